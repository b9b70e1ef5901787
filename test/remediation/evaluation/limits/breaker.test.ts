import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import type { Fleet } from "../../../../src/model/snapshot.ts";
import {
  churnAfterReboots,
  noFailureRates,
  type QuietNetwork,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../../harness/policies.ts";

/** Limits with the circuit breaker only: it opens when more than 10 nodes fire within 10 minutes. */
const breakerOnly = {
  canary: false,
  maxInFlight: 100,
  maxDisrupted: { share: 1, amount: 100 },
  maxDisruptedPer: { region: null, country: null },
  minOnlinePer: { region: null, country: null },
  maxActions: { amount: 1_000, perMs: HOUR_MS },
  maxUnhealthy: { share: 1 },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
  breaker: { share: 0.05, amount: 10, withinMs: 10 * MINUTE_MS },
  efficacy: { window: 100, minSuccess: 0 },
} as const;

const scenario = { nodes: 40 };
const breakerOf = (network: QuietNetwork) => network.controller().view.status().breaker;

/** Makes half of the fleet fail at the same time. */
function failHalf(network: QuietNetwork): void {
  for (const node of network.nodes().slice(0, 20)) network.failNode(node, "operator");
}

test("opens after a kill between the commit of the timers that fire and the next commit", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], breakerOnly), scenario });
  failHalf(network);
  network.injectedFailures.crashAt = {
    when: "after",
    changes: (all) => all.some((change) => change.kind === "timer" && change.row.state === "firing"),
  };
  await network.advance(20 * MINUTE_MS);
  expect(network.isAlive()).toBe(false);
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(breakerOf(network)).toMatchObject({ nodes: 20 });
  expect(network.postCount()).toBe(0);
});

test("counts the nodes that fire under a dry run when a reload makes the policy enforce", async () => {
  const config = (mode: "dry_run" | "enforce") => remediationConfig([rebootOffline({ mode })], breakerOnly);
  const network = await startQuietNetwork({ config: config("dry_run"), scenario });
  failHalf(network);
  await network.advance(30 * MINUTE_MS);
  expect(breakerOf(network)).toBeNull();
  await network.reload({ config: config("enforce") });
  await network.advance(30 * MINUTE_MS);
  expect(breakerOf(network)).toMatchObject({ nodes: 20 });
  expect(network.postCount()).toBe(0);
  // After a reset it counts from zero, also across a kill.
  expect(await network.commands().resetBreaker()).toMatchObject({ ok: true });
  network.kill();
  await network.restart({ config: config("enforce") });
  await network.advance(10 * MINUTE_MS);
  expect(breakerOf(network)).toBeNull();
  expect(network.postCount()).toBeGreaterThan(0);
});

test("counts the nodes that fire under a dry run when a restart makes the policy enforce and a kill follows", async () => {
  const config = (mode: "dry_run" | "enforce") => remediationConfig([rebootOffline({ mode })], breakerOnly);
  const network = await startQuietNetwork({ config: config("dry_run"), scenario });
  failHalf(network);
  await network.advance(30 * MINUTE_MS);
  await network.restart({ config: config("enforce") });
  network.kill();
  await network.restart({ config: config("enforce") });
  await network.advance(30 * MINUTE_MS);
  expect(breakerOf(network)).toMatchObject({ nodes: 20 });
  expect(network.postCount()).toBe(0);
});

test("counts the nodes that fired before an evaluation failed", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], breakerOnly), scenario });
  const controller = network.controller();
  const { log, remediationState } = network.daemon;
  const timers = () => [...remediationState.records.timersOf("reboot-offline").values()];
  const firing = () => timers().filter(({ state }) => state === "firing").length;
  let failedAt = 0;
  /** Returns a fleet whose evaluation fails once, after some nodes have fired. */
  const failingOnce = (fleet: Fleet): Fleet => {
    const status = new Proxy(fleet.status, {
      get(target, key) {
        if (failedAt === 0 && firing() === 15) {
          failedAt = firing();
          throw new Error("the status can't be evaluated");
        }
        return Reflect.get(target, key);
      },
    });
    return { ...fleet, status };
  };
  const update = controller.update.bind(controller);
  controller.update = (snapshot, plan) => update({ ...snapshot, fleet: failingOnce(snapshot.fleet) }, plan);
  failHalf(network);
  await network.advance(30 * MINUTE_MS);
  expect(failedAt).toBe(15);
  expect(firing()).toBe(20);
  expect(breakerOf(network)).toMatchObject({ nodes: 15 });
  expect(network.postCount()).toBe(0);
  const isDefect = ({ message }: { readonly message: string }) => message.startsWith("remediation round failed");
  // The failure was intended, so it must not fail the test when the network stops.
  expect(log.lines.splice(log.lines.findIndex(isDefect), 1)).toMatchObject([{ level: "error" }]);
});

describe("nodes that leave the list after an action", () => {
  const churn = churnAfterReboots({ vanishAfterReboot: 1 });
  const breaker = { share: 0, amount: 3, withinMs: HOUR_MS };
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, breaker });
  const start = () => startQuietNetwork({ config, scenario: { nodes: 40, rates: noFailureRates, churn } });

  test("don't open the breaker again when the daemon restarts or reloads after a reset", async () => {
    const network = await start();
    const [fourth, ...others] = network.nodes().slice(0, 4);
    for (const node of others) network.failNode(node);
    await network.advance(20 * MINUTE_MS);
    expect(network.nodes()).toHaveLength(37);
    network.failNode(fourth!);
    await network.advanceUntil(() => breakerOf(network) !== null);
    expect(await network.commands().resetBreaker()).toMatchObject({ ok: true });
    await network.reload({});
    await network.advance(10 * MINUTE_MS);
    expect(network.nodes()).toHaveLength(36);
    await network.restart();
    await network.advance(10 * MINUTE_MS);
    expect(breakerOf(network)).toBeNull();
  });

  test("count once, even if the daemon restarts within the period", async () => {
    const network = await start();
    const [first, second, third] = network.nodes();
    for (const node of [first!, second!]) network.failNode(node);
    await network.advance(40 * MINUTE_MS);
    expect(network.nodes()).toHaveLength(38);
    await network.restart();
    // The two fired and were lost more than an hour ago.
    await network.advance(40 * MINUTE_MS);
    const [fourth] = network.nodes().filter((node) => node !== third);
    for (const node of [third!, fourth!]) network.failNode(node);
    await network.advance(20 * MINUTE_MS);
    expect(breakerOf(network)).toBeNull();
  });
});

test("counts what fired while the journal's clock was behind, once that is corrected", async () => {
  const downMs = 2 * HOUR_MS;
  const breaker = { share: 0, amount: 10, withinMs: HOUR_MS };
  const config = remediationConfig([rebootOffline()], { ...breakerOnly, breaker });
  const network = await startQuietNetwork({ config, scenario });
  const fail = (from: number, to: number) => {
    for (const node of network.nodes().slice(from, to)) network.failNode(node, "operator");
  };
  // The wall clock shows the last time in the journal after the downtime.
  network.daemon.clock.stepWallClock(-downMs);
  await network.restart({ downMs });
  fail(0, 6);
  await network.advance(20 * MINUTE_MS);
  network.daemon.clock.stepWallClock(downMs);
  await network.restart();
  fail(6, 12);
  await network.advance(20 * MINUTE_MS);
  expect(breakerOf(network)).toMatchObject({ nodes: 12 });
});
