import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { TimerState } from "../../../src/policy/timer.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { listsOnlySettings, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";

/** Nodes that fail, more than one transaction has timers. The others show that the service still receives reports. */
const FAILED = 600;
/** All nodes are on one page, so that their timers end in the same round. */
const PAGE_LIMIT = 2_000;
const scenario = {
  nodes: FAILED + 20,
  service: { ...defaultScenario.service, pageLimitMax: PAGE_LIMIT },
};
const settings = { ...listsOnlySettings, pageLimit: PAGE_LIMIT };

/** Makes most nodes fail, and kills the process after the first of the transactions with timers of that state. */
async function crashWithin(network: QuietNetwork, state: TimerState): Promise<void> {
  for (const node of network.nodes().slice(0, FAILED)) network.failNode(node, "operator");
  network.injectedFailures.crashAt = {
    when: "after",
    changes: (all) => all.some((change) => change.kind === "timer" && change.row.state === state),
  };
  await network.advance(20 * MINUTE_MS);
  expect(network.isAlive()).toBe(false);
}

/** Returns the number of nodes whose timer is in that state in the journal, and a fact of it. */
async function journaled(network: QuietNetwork, state: TimerState, fact: string) {
  const { timers, facts } = await network.store.journal.load(0);
  return { timers: timers.filter((timer) => timer.state === state).length, fact: JSON.parse(facts.get(fact)!) };
}

test("a crash while the timers of a mass event are journaled loses no node of an incident", async () => {
  const correlated = { by: "region", nodes: 5, share: 0.02, withinMs: 5 * MINUTE_MS } as const;
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...withoutLimits, correlated }),
    scenario,
    settings,
  });
  await crashWithin(network, "pending");
  const { timers, fact } = await journaled(network, "pending", "remediation.incidents");
  expect(timers).toBeGreaterThan(0);
  expect(timers).toBeLessThan(FAILED);
  const mentions = JSON.stringify(fact).split(/"(?=node_)/).length - 1;
  // Once for its onset, and once for its incident, of policies that act and of all. With more, the fact of a large fleet
  // would block the event loop.
  expect(mentions).toBe(3 * FAILED);
  await network.restart();
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
});

test("a crash while the timers of a mass event are journaled loses no node that the circuit breaker counts", async () => {
  const breaker = { share: 0.05, amount: 550, withinMs: HOUR_MS };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...withoutLimits, breaker }),
    scenario,
    settings,
  });
  await crashWithin(network, "firing");
  const { timers, fact } = await journaled(network, "firing", "remediation.breaker");
  expect(timers).toBeGreaterThan(0);
  expect(timers).toBeLessThan(FAILED);
  expect(fact.open).toMatchObject({ nodes: FAILED });
  await network.restart();
  await network.advance(15 * MINUTE_MS);
  expect(network.controller().view.status().breaker).toMatchObject({ nodes: FAILED });
  expect(network.postCount()).toBe(0);
});

test("a crash while the timers of a mass event are journaled counts each node once", async () => {
  // The nodes of the last transaction fire twice, but they are no more nodes.
  const breaker = { share: 0.05, amount: FAILED, withinMs: HOUR_MS };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ mode: "approve" })], { ...withoutLimits, breaker }),
    scenario,
    settings,
  });
  await crashWithin(network, "firing");
  await network.restart();
  await network.advance(15 * MINUTE_MS);
  expect((await journaled(network, "firing", "remediation.breaker")).timers).toBe(FAILED);
  expect(network.controller().view.status().breaker).toBeNull();
});
