import { expect, test } from "vitest";
import { runSharedHours, type SecondClient } from "../api-client/second-client.ts";

const limiters = ["token_bucket", "fixed_window", "sliding_window"] as const;
const MINUTES = 120;

/** What a second client may do, in calls a minute on average, and how. */
const clients: Readonly<Record<string, SecondClient>> = {
  "5 a minute": { category: "node_management", calls: 1, everyMs: 12_000, jitter: 0.5 },
  "30 a minute": { category: "node_management", calls: 1, everyMs: 2_000, jitter: 0.5 },
  "60 a minute, exactly": { category: "node_management", calls: 1, everyMs: 1_000 },
  "70 a minute": { category: "node_management", calls: 1, everyMs: 857, jitter: 0.9 },
  "20 at once, every minute": { category: "node_management", calls: 20, everyMs: 60_000, jitter: 0.2 },
  "60 at once, every ten minutes": { category: "node_management", calls: 60, everyMs: 600_000, jitter: 0.1 },
  "50 a minute, in the second half": {
    category: "node_management",
    calls: 1,
    everyMs: 1_200,
    jitter: 0.5,
    fromMinute: 60,
  },
  "50 a minute, in the first half": {
    category: "node_management",
    calls: 1,
    everyMs: 1_200,
    jitter: 0.5,
    untilMinute: 60,
  },
};
/** The plan Business allows 50 requests at once. */
const AT_ONCE_MAX = 50;
const cases = limiters.flatMap((limiter) =>
  (["enterprise", "business"] as const).flatMap((plan) =>
    Object.keys(clients)
      .filter((client) => plan === "enterprise" || clients[client]!.calls <= AT_ONCE_MAX)
      .map((client) => ({ limiter, plan, client })),
  ),
);
/** Minutes in two hours in which bursts meet as they had not of late. */
const SURPRISES_MAX = 2;

test.each(cases)(
  "two hours beside a second client that calls $way, under a $limiter of the plan $plan: neither is refused, but by surprise",
  async ({ limiter, plan, client }) => {
    const second = clients[client]!;
    const service = { limiter, plan, rateLimitHeaders: "category" } as const;
    const report = await runSharedHours({ service, minutes: MINUTES, seconds: [second] });
    const ours = report.ownCalls.slice(MINUTES / 2).reduce((sum, calls) => sum + calls, 0) / (MINUTES / 2);
    const them = report.externalCalls / MINUTES;
    const reported = report.reported.node_management;
    console.log(
      `${limiter} ${plan}, ${client}: ours ${ours.toFixed(0)} a minute, theirs ${them.toFixed(1)}, proved ${reported} of ${report.externalCalls}; ` +
        `refused us in minutes [${report.rejected.ownPerMinute}], them [${[...new Set(report.rejected.externalPerMinute)]}]`,
    );
    // Bursts are known once they came back from a pause, and were admitted whole.
    const isBursty = second.calls > 1;
    for (const minutes of [report.rejected.ownPerMinute, report.rejected.externalPerMinute]) {
      const late = new Set(minutes.filter((minute) => !isBursty || minute >= 40));
      expect(late.size).toBeLessThanOrEqual(isBursty ? SURPRISES_MAX : 0);
    }
    expect(reported).toBeLessThanOrEqual(report.externalCalls);
    // Of what others leave of 100 a minute; nearer to it the more evenly they come.
    expect(ours).toBeGreaterThan(0.4 * (100 - (isBursty ? second.calls : 60_000 / second.everyMs)));
  },
  600_000,
);
