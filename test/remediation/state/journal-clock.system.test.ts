import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { CLOCK_FACT, JournalClock } from "../../../src/remediation/state/journal-clock.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import {
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../harness/daemon/quiet-network.ts";
import { createRecordingLog, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { episodeStates, nodesActedOn } from "../../harness/remediation-results.ts";

const JUMP_MS = 100 * DAY_MS;
const trueTime = (network: QuietNetwork, jump: number) => network.daemon.clock.now() - jump;
const rows = (network: QuietNetwork) => [
  network.actions().length,
  network.episodes().length,
  network.decisions().length,
];

/** Shifts the Date of the first responses. */
function shiftFirstDates(service: Transport, offsetMs: number, count = 1): Transport {
  let left = count;
  return {
    ...service,
    async request(request, signal) {
      const sent = await service.request(request, signal);
      if (!sent.ok || left-- <= 0) return sent;
      const date = new Date(Date.parse(sent.value.headers.date!) + offsetMs).toUTCString();
      return { ...sent, value: { ...sent.value, headers: { ...sent.value.headers, date } } };
    },
  };
}

test.each([1_000, -100])("a first Date that is wrong by %i days does not set a new journal", async (days) => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    wrapTransport: (service) => shiftFirstDates(service, days * DAY_MS),
    warmUpMs: 30 * SECOND_MS,
  });
  const { remediationState, clock } = network.daemon;
  const { trust } = network.controller().view.status();
  expect(trust.map(({ detail }) => detail).join()).toContain(
    "no two responses from the service have agreed on its Date yet",
  );
  await network.advance(5 * MINUTE_MS);
  expect(Math.abs(remediationState.now() - clock.now())).toBeLessThan(2 * SECOND_MS);
  expect(remediationState.clock.isSettled()).toBe(true);
  await network.advance(40 * MINUTE_MS);
  expect(network.controller().view.status().trust).toEqual([]);
});

test("a wall clock that is 100 days ahead at one start prunes nothing, and later times are right", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [first, second] = onePerRegion(network, 2);
  network.failNode(first!);
  await network.advance(40 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  const before = rows(network);
  network.daemon.clock.stepWallClock(JUMP_MS);
  await network.restart();
  await network.advance(HOUR_MS);
  expect(rows(network)).toEqual(before);
  // The cooldown after the earlier action still holds.
  network.failNode(second!);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second]);
  const { sentAt } = network.actions().at(-1)!;
  expect(Math.abs(sentAt! - trueTime(network, JUMP_MS))).toBeLessThan(30 * MINUTE_MS);
  network.daemon.clock.stepWallClock(-JUMP_MS);
  await network.restart();
  await network.advance(10 * MINUTE_MS);
  expect(Math.abs(network.daemon.remediationState.now() - network.daemon.clock.now())).toBeLessThan(5 * MINUTE_MS);
});

test("a wall clock that is 2 h ahead at the start neither frees max_actions nor ends a cooldown", async () => {
  const maxActions = { amount: 2, perMs: HOUR_MS };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], { maxActions }) });
  const [first, second, third] = onePerRegion(network, 3);
  network.failNode(first!);
  await network.advance(10 * MINUTE_MS);
  network.failNode(second!);
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second]);
  network.daemon.clock.stepWallClock(2 * HOUR_MS);
  network.failNode(third!);
  await network.restart();
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second]);
  expect(network.holdReasons(third!)).toEqual(["max_actions"]);
  await network.advance(40 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second, third]);
});

test("after a long downtime a wrong wall clock holds every action until it is right", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.daemon.clock.stepWallClock(JUMP_MS);
  await network.restart({ downMs: DAY_MS });
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["service_clock"]);
  expect(network.explain(node).policies[0]!.blockers[0]!.detail).toMatch(/wall clock .* is 100d ahead of/);
  network.daemon.clock.stepWallClock(-JUMP_MS);
  await network.advance(2 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.daemon.remediationState.now()).toBe(network.daemon.clock.now());
});

test("if the clocks still disagree after a long downtime, the hold ends after an hour, by the earlier clock", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.daemon.clock.stepWallClock(JUMP_MS);
  await network.restart({ downMs: DAY_MS });
  await network.advance(55 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(Math.abs(network.daemon.remediationState.now() - trueTime(network, JUMP_MS))).toBeLessThan(MINUTE_MS);
});

test("a first start with a wall clock that is ahead takes the service's time for the journal", async () => {
  const clock = createVirtualClock(START_MS);
  // The service runs before the daemon.
  const wrapTransport = (service: Transport) => {
    clock.stepWallClock(JUMP_MS);
    return service;
  };
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot] })]),
    clock,
    wrapTransport,
  });
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(Math.abs(network.actions()[0]!.createdAt - trueTime(network, JUMP_MS))).toBeLessThan(20 * MINUTE_MS);
});

test("a service whose Date is days ahead at a start moves the journal's clock no more than the wall clock does", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { maxActions: { amount: 1, perMs: HOUR_MS } }),
  });
  const [first, second] = onePerRegion(network, 2);
  network.failNode(first!);
  await network.advance(10 * MINUTE_MS);
  network.failNode(second!);
  network.setFault({ kind: "clock_skew", skewMs: JUMP_MS });
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first]);
  expect(network.daemon.remediationState.now() - network.daemon.clock.now()).toBeLessThan(MINUTE_MS);
});

test("a cooldown that starts while the clocks disagree has its full length", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { stormCooldownMs: 30 * MINUTE_MS }),
  });
  const [node] = onePerRegion(network, 1);
  network.failNode(node!);
  network.daemon.clock.stepWallClock(2 * HOUR_MS);
  await network.restart({ downMs: 45 * MINUTE_MS });
  await network.advance(30 * MINUTE_MS);
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(20 * MINUTE_MS);
  network.setFault(null);
  await network.advance(20 * MINUTE_MS);
  // The clocks were settled 10 minutes ago, and the cooldown ends in 10 minutes.
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
  expect(network.postCount()).toBe(0);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test.each([2, -2])(
  "a short downtime with a wall clock that is ahead by %i h is added at that start, not at the next one",
  async (hours) => {
    const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
    const aheadMs = hours * HOUR_MS;
    network.daemon.clock.stepWallClock(aheadMs);
    await network.restart({ downMs: 2 * MINUTE_MS });
    await network.advance(10 * MINUTE_MS);
    const { remediationState } = network.daemon;
    expect(Math.abs(trueTime(network, aheadMs) - remediationState.now())).toBeLessThan(5 * SECOND_MS);
  },
);

test.each([
  { downMs: 30 * MINUTE_MS, stepMs: -2 * HOUR_MS },
  // The wall clock then shows the time at which the daemon went down, so one of the two clocks agrees with the journal.
  { downMs: 6 * MINUTE_MS, stepMs: -6 * MINUTE_MS },
])("a request for approval from before a downtime of unknown length expires: %o", async ({ downMs, stepMs }) => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ mode: "approve" })]),
    remedy: "operator",
  });
  await network.advanceUntil(() => network.actions().length > 0);
  network.daemon.clock.stepWallClock(stepMs);
  await network.restart({ downMs });
  await network.advance(10 * MINUTE_MS);
  expect(network.actions()[0]).toMatchObject({
    state: "lapsed",
    detail: expect.stringMatching(/^it is unknown how long ago it was requested/),
  });
});

test("an approval that is given before the downtime is known is valid for its full time", async () => {
  const config = remediationConfig([rebootOffline({ mode: "approve" })], {
    approvalTtlMs: 4 * HOUR_MS,
    stormCooldownMs: HOUR_MS,
  });
  const { network } = await startWithFailedNode({ config, remedy: "operator" });
  await network.advanceUntil(() => network.actions().length > 0);
  network.setFault({ kind: "hang" });
  await network.restart({ downMs: 5 * HOUR_MS });
  const [action] = network.actions();
  expect(await network.commands("alice").approve(action!.id)).toMatchObject({ ok: true });
  await network.advance(30 * MINUTE_MS);
  network.setFault(null);
  await network.advance(10 * MINUTE_MS);
  expect(network.actions()[0]).toMatchObject({ state: "approved" });
  await network.advance(HOUR_MS);
  expect(network.actions()[0]).toMatchObject({ id: action!.id, state: "sent" });
});

test("a correction of the clock after a disagreement frees no max_actions: actions are held for an hour, also across a restart", async () => {
  const maxActions = { amount: 2, perMs: HOUR_MS };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], { maxActions }) });
  const [first, second, third] = onePerRegion(network, 3);
  network.daemon.clock.stepWallClock(-9 * HOUR_MS);
  await network.restart({ downMs: 2 * HOUR_MS });
  await network.advance(HOUR_MS);
  network.failNode(first!);
  await network.advance(10 * MINUTE_MS);
  network.failNode(second!);
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second]);
  network.daemon.clock.stepWallClock(9 * HOUR_MS);
  network.failNode(third!);
  await network.restart();
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(third!)).toEqual(["service_clock"]);
  await network.restart();
  await network.advance(40 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second]);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([first, second, third]);
});

test.each([2, -2])(
  "a wall clock that changes by %d min holds actions until a response agrees on the service's time, or for an hour",
  async (minutes) => {
    const clock = createVirtualClock(START_MS);
    const journalClock = new JournalClock(
      new Map([[CLOCK_FACT, String(START_MS - SECOND_MS)]]),
      clock,
      createRecordingLog(),
    );
    journalClock.check(START_MS);
    const problem = (agreedAt: number, observedFrom = 2 * HOUR_MS) => {
      return journalClock.suspensionProblem(START_MS + clock.monotonic(), agreedAt, observedFrom);
    };
    clock.stepWallClock(MINUTE_MS);
    expect(problem(0)).toBeNull();
    clock.stepWallClock(minutes * MINUTE_MS);
    expect(problem(0)).toMatch(/^the wall clock was changed, or the machine was suspended; .* or in 1h$/);
    await clock.advance(HOUR_MS - 1);
    expect(problem(0)).not.toBeNull();
    expect(problem(SECOND_MS)).toBeNull();
    await clock.advance(1);
    expect(problem(0)).toBeNull();
    expect(problem(SECOND_MS, 0)).toMatch(/; the hold ends after the next walk of the nodes$/);
  },
);
