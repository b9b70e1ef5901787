import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { everyMinuteSettings, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn } from "../../harness/remediation-results.ts";
import { isLongRun } from "../../harness/run-length.ts";

const byLastSeen = rebootOffline({ when: 'node.status == "offline" && now - node.last_seen > duration("8m")' });

for (const hours of [-30, 5]) {
  test(`a wall clock change of ${hours} h makes no node stale, advances no timer, and causes no action`, async () => {
    const policies = [
      byLastSeen,
      rebootOffline({ name: "stale", when: 'now - node.last_seen > duration("4m")', forMs: 0 }),
    ];
    const network = await startQuietNetwork({ config: remediationConfig(policies) });
    const [node] = network.nodes("us-east");
    network.daemon.clock.stepWallClock(hours * HOUR_MS);
    network.interventions.startFailure(node!, { failureMode: "hot", remedy: "operator" });
    await network.advance(20 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
    expect(network.episodes()).toEqual([]);
  });

  test(`a wall clock change of ${hours} h during an episode only holds its action until the next walk`, async () => {
    const retry = { episodes: 5, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
    const { network } = await startWithFailedNode({
      config: remediationConfig([rebootOffline({ steps: [steps.reboot], retry })]),
      remedy: "operator",
    });
    await network.advance(3 * MINUTE_MS);
    network.daemon.clock.stepWallClock(hours * HOUR_MS);
    await network.advance(MINUTE_MS);
    expect(network.postCount()).toBe(0);
    await network.advance(4 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    network.daemon.clock.stepWallClock(-hours * HOUR_MS);
    await network.advance(5 * MINUTE_MS);
    expect(actionLines(network)).toEqual(["reboot: null"]);
    // The action was held until the next walk.
    await network.advance(6 * MINUTE_MS);
    expect(actionLines(network)).toEqual(["reboot: ineffective"]);
    // After giving up, the next attempt is an hour from now, regardless of the wall clock.
    network.daemon.clock.stepWallClock(hours * HOUR_MS);
    await network.advance(45 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    await network.advance(20 * MINUTE_MS);
    expect(network.postCount()).toBe(2);
  });
}

test("a wall clock that is set back during a restart makes a cooldown neither longer nor shorter", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot] })], { cooldownMs: HOUR_MS }),
  });
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  network.failNode(node);
  network.daemon.clock.stepWallClock(-24 * HOUR_MS);
  await network.restart();
  await network.advance(35 * MINUTE_MS);
  expect(network.holdReasons(node)).toEqual(["cooldown"]);
  await network.advance(35 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
});

for (const minutes of [-90, 90]) {
  test(`a jump of the service's clock by ${minutes} min causes no action`, async () => {
    const network = await startQuietNetwork({
      config: remediationConfig([{ ...byLastSeen, when: 'now - node.last_seen > duration("3m")', forMs: 0 }]),
    });
    network.setFault({ kind: "clock_skew", skewMs: minutes * MINUTE_MS });
    await network.advance(30 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
    network.setFault(null);
    await network.advance(30 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
  });
}

test.each(isLongRun ? [7, 28] : [28])(
  "a jump of the service's clock during a walk of many pages makes no node stale: %i s after a full minute",
  async (second) => {
    const clock = createVirtualClock(START_MS);
    const wrapTransport = (service: Transport): Transport => ({
      async request(request, signal) {
        if (request.path.startsWith("/v1/nodes?")) await clock.sleep(3 * SECOND_MS, signal);
        return service.request(request, signal);
      },
      close: () => service.close(),
    });
    const network = await startQuietNetwork({
      clock,
      wrapTransport,
      scenario: { nodes: 200 },
      settings: { ...everyMinuteSettings, pageLimit: 10 },
      config: remediationConfig([{ ...byLastSeen, when: 'now - node.last_seen > duration("3m")', forMs: 0 }]),
      warmUpMs: 10 * MINUTE_MS + second * SECOND_MS,
    });
    expect(network.controller().view.status().trust).toEqual([]);
    for (const minutes of [90, -90, 0]) {
      network.setFault({ kind: "clock_skew", skewMs: minutes * MINUTE_MS });
      await network.advance(10 * MINUTE_MS);
      expect(network.controller().view.status().breaker).toBeNull();
    }
    expect(network.notifications).toEqual([]);
    expect(network.episodes()).toEqual([]);
    expect(network.postCount()).toBe(0);
  },
);

/** Returns a transport in which the Date of the next response is wrong while `isNextWrong` is set. */
function createWrongDates(minutes: number) {
  const dates = {
    isNextWrong: false,
    wrapTransport: (service: Transport): Transport => ({
      async request(request, signal) {
        const sent = await service.request(request, signal);
        if (!dates.isNextWrong || !sent.ok) return sent;
        dates.isNextWrong = false;
        const date = new Date(Date.parse(sent.value.headers.date!) + minutes * MINUTE_MS).toUTCString();
        return { ok: true, value: { ...sent.value, headers: { ...sent.value.headers, date } } };
      },
      close: () => service.close(),
    }),
  };
  return dates;
}

test.each([-90, 90])(
  "a response whose Date alone is wrong by %i min holds no action and causes none",
  async (minutes) => {
    const dates = createWrongDates(minutes);
    const stale = rebootOffline({ name: "stale", when: 'now - node.last_seen > duration("3m")', forMs: 0 });
    const config = remediationConfig([byLastSeen, stale]);
    const network = await startQuietNetwork({ wrapTransport: dates.wrapTransport, config });
    for (let minute = 0; minute < 10; minute++) {
      dates.isNextWrong = minute % 3 === 0;
      for (let second = 0; second < 60; second++) {
        await network.advance(SECOND_MS);
        expect(network.controller().view.status().trust).toEqual([]);
      }
    }
    expect(network.episodes()).toEqual([]);
  },
);

test.each([-90, 90])("a frozen last_seen stays untrusted while a single Date is wrong by %i min", async (minutes) => {
  const dates = createWrongDates(minutes);
  const network = await startQuietNetwork({
    wrapTransport: dates.wrapTransport,
    config: remediationConfig([byLastSeen]),
  });
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(HOUR_MS);
  for (let minute = 0; minute < 10; minute++) {
    dates.isNextWrong = minute % 3 === 0;
    for (let second = 0; second < 60; second++) {
      await network.advance(SECOND_MS);
      const { trust } = network.controller().view.status();
      expect(trust.map(({ reason }) => reason)).toEqual(["last_seen_stale"]);
    }
  }
});

test("an unhealthy node is healed while our clock is wrong by days", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([byLastSeen]) });
  network.daemon.clock.stepWallClock(100 * HOUR_MS);
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(40 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  expect(episodeStates(network)).toEqual(["healed"]);
});
