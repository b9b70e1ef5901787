import { expect, test } from "vitest";
import { LIMITER_KINDS, type LimiterKind } from "../../src/config/schema/scenario.ts";
import { runSharedHours, type SecondClient } from "../api-client/rate-limits/second-client.ts";

const MINUTES = 120;

/** Call patterns of a second client, by mean calls a minute. */
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
/** The plan Business allows 50 concurrent requests. */
const AT_ONCE_MAX = 50;
const cases = LIMITER_KINDS.flatMap((limiter) =>
  (["enterprise", "business"] as const).flatMap((plan) =>
    Object.keys(clients)
      .filter((client) => plan === "enterprise" || clients[client]!.calls <= AT_ONCE_MAX)
      .map((client) => ({ limiter, plan, client })),
  ),
);
/** Minutes in two hours in which bursts may coincide in a new way and cause a 429. */
const REJECTED_MINUTES_MAX = 2;
/** A sliding counter shows the calls of the other client later, and only by their share. */
const REJECTED_MINUTES_MAX_OF_COUNTER = 1;
/**
 * Minimum share that we use of the calls that the other client leaves out of 100 a minute. A window that starts with
 * the first call lasts longer than a minute, and a sliding counter frees calls later.
 */
const usedMin = (limiter: LimiterKind) =>
  limiter === "sliding_counter" || limiter === "first_call_window" ? 0.35 : 0.4;

test.each(cases)(
  "shares a $limiter of the plan $plan with another client (calls: $client), almost without a 429 for either",
  async ({ limiter, plan, client }) => {
    const second = clients[client]!;
    const service = { limiter, plan, rateLimitHeaders: "category" } as const;
    const report = await runSharedHours({ service, minutes: MINUTES, secondClients: [second] });
    const ownRate = report.ownCalls.slice(MINUTES / 2).reduce((sum, calls) => sum + calls, 0) / (MINUTES / 2);
    const externalRate = report.externalCalls / MINUTES;
    const reported = report.reported.node_management;
    console.log(
      `${limiter} ${plan}, ${client}: own calls ${ownRate.toFixed(0)} a minute, external ${externalRate.toFixed(1)}, detected ${reported} of ${report.externalCalls}; ` +
        `429s in minutes: own [${report.rejected.ownPerMinute}], external [${[...new Set(report.rejected.externalPerMinute)]}]`,
    );
    // Bursts are known after they have recurred and were admitted completely.
    const isBursty = second.calls > 1;
    const rejectedMinutesOfSteady = limiter === "sliding_counter" ? REJECTED_MINUTES_MAX_OF_COUNTER : 0;
    for (const minutes of [report.rejected.ownPerMinute, report.rejected.externalPerMinute]) {
      const late = new Set(minutes.filter((minute) => !isBursty || minute >= 40));
      expect(late.size).toBeLessThanOrEqual(isBursty ? REJECTED_MINUTES_MAX : rejectedMinutesOfSteady);
    }
    expect(reported).toBeLessThanOrEqual(report.externalCalls);
    expect(ownRate).toBeGreaterThan(usedMin(limiter) * (100 - (isBursty ? second.calls : 60_000 / second.everyMs)));
  },
  600_000,
);
