import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { Notification, Receiver } from "../../src/model/remediation/notification.ts";
import { type GroupedDaemon, startTrustedGroup } from "../harness/daemon/daemon-group.ts";
import { rebootOffline, remediationConfig, steps, withoutRetries } from "../harness/policies.ts";

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
    const group = await startTrustedGroup({ daemons: 1, receivers: [receiver] });
    const node = group.failNode();
    await group.advanceUntil(() => group.actions().some(({ state }) => state === "sent"));
    await group.daemons[0]!.reload(changed);
    expect(accepted).toEqual([]);
    receiver.isUp = true;
    await group.advance(5 * MINUTE_MS);
    expect(accepted.filter(({ kind, endsAt }) => kind === "episode" && endsAt === null)).toMatchObject([{ node }]);
  },
);

test.each([
  { end: "was killed", endOf: (daemon: GroupedDaemon) => daemon.pause() },
  { end: "was stopped", endOf: (daemon: GroupedDaemon) => daemon.stop() },
])("the next leader sends what a receiver did not take before the leader $end, each once", async ({ endOf }) => {
  const { receiver, accepted } = createReceiver();
  const config = remediationConfig([rebootOffline({ forMs: MINUTE_MS, retry: withoutRetries, steps: [steps.notify] })]);
  const group = await startTrustedGroup({ receivers: [receiver], config });
  const node = group.failNode();
  await group.advance(3 * MINUTE_MS);
  await endOf(group.daemons[0]!);
  await group.advance(MINUTE_MS);
  expect(group.leaders()).toEqual(["two"]);
  expect(accepted).toEqual([]);
  receiver.isUp = true;
  await group.advance(2 * MINUTE_MS);
  const ofNode = accepted.filter((notification) => notification.node === node);
  expect(ofNode.map(({ kind, endsAt }) => [kind, endsAt === null])).toEqual([
    ["episode", true],
    ["step", true],
    ["episode", false],
    ["given_up", true],
  ]);
});

test.each([
  {
    disturbance: "is cut off from the database",
    begin(daemon: GroupedDaemon) {
      daemon.database.isReachable = false;
    },
    end(daemon: GroupedDaemon) {
      daemon.database.isReachable = true;
    },
  },
  {
    disturbance: "is suspended",
    begin: (daemon: GroupedDaemon) => daemon.pause(),
    end: (daemon: GroupedDaemon) => daemon.resume(),
  },
])("a leader that $disturbance sends nothing after its lease has ended, because another one leads", async (given) => {
  const { receiver, accepted } = createReceiver();
  receiver.isUp = true;
  const group = await startTrustedGroup({ receivers: [{ ...receiver, repeatMs: MINUTE_MS }] });
  const [one] = group.daemons;
  const node = group.failNode();
  await group.advanceUntil(() => accepted.some(({ kind }) => kind === "episode"));
  given.begin(one!);
  await group.advanceUntil(() => accepted.some(({ node: of, endsAt }) => of === node && endsAt !== null));
  await group.advance(5 * MINUTE_MS);
  given.end(one!);
  await group.advance(5 * MINUTE_MS);
  expect(group.leaders()).toEqual(["two"]);
  expect(accepted.at(-1)).toMatchObject({ kind: "episode", node, endsAt: expect.any(Number) });
  expect(accepted.filter(({ kind }) => kind !== "episode")).toEqual([]);
  expect(one!.log.lines.filter(({ message }) => message.includes("does not accept"))).toEqual([]);
});

test("a leader whose lease has ended keeps its notifications, and sends them once it leads again", async () => {
  const { receiver, accepted } = createReceiver();
  receiver.isUp = true;
  const group = await startTrustedGroup({ daemons: 1, receivers: [receiver] });
  const [one] = group.daemons;
  one!.database.isReachable = false;
  // Longer than a receiver that is down is tried.
  await group.advance(1.25 * HOUR_MS);
  expect(accepted).toEqual([]);
  one!.database.isReachable = true;
  await group.advance(5 * MINUTE_MS);
  // Without a leader there were no walks.
  expect(accepted.map(({ kind, endsAt }) => [kind, endsAt === null])).toEqual([
    ["untrusted", true],
    ["untrusted", false],
  ]);
});
