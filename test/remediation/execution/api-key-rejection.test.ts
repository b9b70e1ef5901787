import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { episodeLines, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";

for (const status of [401, 403] as const) {
  test(`a ${status} to a POST is notified once, however often it is refused again, and its end once`, async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([rebootOffline()], { canary: false, maxInFlight: 5 }),
    });
    for (const node of onePerRegion(context, 2)) context.failedNodes(node);
    context.setFault({ kind: "status", status }, "POST");
    await context.advance(90 * MINUTE_MS);
    expect(context.postCount()).toBeGreaterThan(2);
    expect(notificationLines(context, "credentials")).toMatchObject([
      { severity: "critical", endsAt: null, summary: expect.stringContaining(`answered ${status}`) },
    ]);
    context.setFault(null);
    await context.advance(HOUR_MS);
    expect(episodeLines(context)).toEqual(["healed", "healed"]);
    expect(notificationLines(context, "credentials")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
    await context.stop();
  });
}

test("a restart with a key that is right again tries an action at once, and tells the end of the refusal", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  context.setFault({ kind: "status", status: 403 }, "POST");
  await context.advanceUntil(() => notificationLines(context, "credentials").length > 0);
  context.setFault(null);
  await context.restart();
  await context.advance(5 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  await context.advance(20 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  const notifications = notificationLines(context, "credentials");
  expect(notifications.map(({ endsAt }) => endsAt === null)).toEqual([true, true, false]);
  expect(new Set(notifications.map(({ key }) => key)).size).toBe(1);
  await context.stop();
});

test("a refusal that no action follows is told to be over after two hours", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.interventions.startFailure(node!, {
    ...{ failureMode: "outage", remedy: "time" },
    recoverAt: context.daemon.clock.now() + 12 * MINUTE_MS,
  });
  context.setFault({ kind: "status", status: 403 }, "POST");
  await context.advance(HOUR_MS);
  expect(notificationLines(context, "credentials")).toHaveLength(1);
  await context.advance(2 * HOUR_MS);
  expect(notificationLines(context, "credentials")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await context.stop();
});
