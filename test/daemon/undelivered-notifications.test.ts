import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Notification, Receiver } from "../../src/model/remediation/notification.ts";
import { startDaemonGroup } from "../harness/daemon-group.ts";
import { rebootOffline, remediationConfig, steps, withoutRetries } from "../harness/policies.ts";

/** After this time the first leader's inventory is trusted. */
const WARM_UP_MS = 4 * MINUTE_MS;

/** A receiver that accepts notifications while it is up, and records them. */
function createReceiver() {
  const accepted: Notification[] = [];
  const receiver: Receiver & { isUp: boolean } = {
    name: "oncall",
    isUp: false,
    async send(notifications) {
      if (!receiver.isUp) return { ok: false, error: "connect ECONNREFUSED", isFinal: false };
      accepted.push(...notifications);
      return { ok: true };
    },
  };
  return { receiver, accepted };
}

const rebootAfter = (minutes: number) =>
  remediationConfig([rebootOffline({ forMs: minutes * MINUTE_MS, retry: withoutRetries })]);

test.each([
  { reloaded: "policies", changed: { config: rebootAfter(2) } },
  { reloaded: "collectors", changed: { settings: { maxMissing: 0.05 } } },
])(
  "notifications that a receiver did not take are sent after a reload of the $reloaded, each once",
  async ({ changed }) => {
    const { receiver, accepted } = createReceiver();
    const group = await startDaemonGroup({ daemons: 1, receivers: [receiver] });
    await group.advance(WARM_UP_MS);
    const node = group.failNode();
    await group.advanceUntil(() => group.actions().some(({ state }) => state === "sent"));
    await group.daemons[0]!.reload(changed);
    expect(accepted).toEqual([]);
    receiver.isUp = true;
    await group.advance(5 * MINUTE_MS);
    expect(accepted.filter(({ kind, endsAt }) => kind === "episode" && endsAt === null)).toMatchObject([{ node }]);
  },
);

test("a daemon that leads again sends the events that a receiver did not take before, but no alert that may be over", async () => {
  const { receiver, accepted } = createReceiver();
  const config = remediationConfig([rebootOffline({ forMs: MINUTE_MS, retry: withoutRetries, steps: [steps.notify] })]);
  const group = await startDaemonGroup({ receivers: [receiver], config });
  const [one, two] = group.daemons;
  await group.advance(WARM_UP_MS);
  group.failNode();
  await group.advance(3 * MINUTE_MS);
  one!.pause();
  await group.advance(30 * SECOND_MS);
  one!.resume();
  await group.advance(10 * SECOND_MS);
  expect(group.leaders()).toEqual(["two"]);
  await two!.stop();
  expect(group.leaders()).toEqual(["one"]);
  receiver.isUp = true;
  await group.advance(MINUTE_MS);
  expect(accepted.map(({ kind }) => kind)).toContain("step");
  expect(accepted.filter(({ kind, endsAt }) => kind === "episode" && endsAt === null)).toEqual([]);
});

test("notifications that were not delivered until a shutdown are dropped, counted and logged", async () => {
  const { receiver } = createReceiver();
  const group = await startDaemonGroup({ daemons: 1, receivers: [receiver] });
  const [one] = group.daemons;
  await group.advance(WARM_UP_MS);
  group.failNode();
  await group.advanceUntil(() => group.actions().some(({ state }) => state === "sent"));
  await one!.stop();
  expect(one!.log.lines.filter(({ message }) => message === "notifications dropped at shutdown")).toMatchObject([
    { level: "error", fields: { receiver: "oncall", notifications: 1 } },
  ]);
  expect(await one!.runtime.metrics.render("text")).toContain('{receiver="oncall",outcome="dropped"} 1\n');
});
