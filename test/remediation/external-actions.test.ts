import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { PolicyRule } from "../../src/model/policy/policy.ts";
import { createSimulatedTransport } from "../../src/simulator/http/transport.ts";
import { createMemoryStore } from "../../src/journal/sqlite.ts";
import { type Daemon, startDaemon, stopDaemon } from "../harness/virtual-daemon.ts";
import { touched } from "../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../harness/policies.ts";
import { listsOnly, startWard, type WardRun } from "../harness/quiet-network.ts";

/** A second daemon on the same service, with a state of its own. */
function startSecond({ daemon: { service, clock } }: WardRun, policies: readonly PolicyRule[]) {
  const store = createMemoryStore();
  const transport = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const rules = rulesOf(policies);
  const daemon: Daemon = startDaemon({ rules, service, clock, transport, store, settings: listsOnly, seed: 2 });
  return { daemon, sentAt: () => store.journal.actions({ limit: 100 }).flatMap(({ sentAt }) => sentAt ?? []) };
}

test("two daemons with states of their own don't act on a node within each other's time to verify", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  await ward.pass(20_000);
  const second = startSecond(ward, [rebootOffline()]);
  await ward.pass(5 * MINUTE_MS);
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(2 * HOUR_MS);
  const sent = [
    ...ward.actions().map(({ sentAt }) => ({ by: "first", at: sentAt! })),
    ...second.sentAt().map((at) => ({ by: "second", at })),
  ].toSorted((a, b) => a.at - b.at);
  expect(new Set(sent.map(({ by }) => by)).size).toBe(2);
  const gaps = sent.slice(1).flatMap(({ by, at }, index) => (sent[index]!.by === by ? [] : [at - sent[index]!.at]));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(15 * MINUTE_MS);
  await stopDaemon(second.daemon);
  await ward.stop();
});

const hot = (match: string) =>
  rebootOffline({ match, when: 'node.status == "online"', steps: [steps.reboot], mode: "approve" });

test("a node whose uptime fell without a reboot of ours is held for a quarter of an hour, also over a restart", async () => {
  const ward = await startWard({ rules: rulesOf([]) });
  const [node, other] = ward.nodes("us-east");
  const rules = rulesOf([hot(`node.id in ["${node}", "${other}"]`)]);
  await ward.reload({ rules });
  await ward.pass(10 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["approval"]);
  ward.people.restart(node!);
  await ward.pass(2 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["approval", "ownership"]);
  expect(ward.reasons(other!)).toEqual(["approval"]);
  await ward.restart({ rules });
  await ward.pass(5 * MINUTE_MS);
  expect(ward.reasons(node!)).toContain("ownership");
  await ward.pass(10 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["approval"]);
  await ward.stop();
});

test("a reboot of ours holds no node as the action of others", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "forced_reboot");
  await ward.pass(HOUR_MS);
  expect(touched(ward)).toEqual([node]);
  expect(ward.decisions().flatMap(({ blockers }) => blockers.map(({ reason }) => reason))).not.toContain("ownership");
  expect(ward.episodes()).toMatchObject([{ state: "healed", acted: 2 }]);
  await ward.stop();
});
