import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { ExternalBlockers } from "../../../src/model/ports.ts";
import {
  listsOnlySettings,
  type QuietNetwork,
  startQuietNetwork,
  suspend,
  withAnswers,
} from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates } from "../../harness/remediation-results.ts";

test("no action is sent on data from before a suspension that began after the read of its node", async () => {
  let onRead = () => {};
  const wrapTransport = withAnswers(
    ({ method, path }) => method === "GET" && path.startsWith("/v1/nodes/"),
    () => onRead(),
  );
  const config = remediationConfig([rebootOffline({ forMs: MINUTE_MS, steps: [steps.reboot] })]);
  const network = await startQuietNetwork({ config, wrapTransport });
  const [node] = network.nodes();
  let suspensions = 0;
  onRead = () => {
    if (suspensions++ === 0) suspend(network, 6 * HOUR_MS);
  };
  network.failNode(node!, "operator");
  await network.advanceUntil(() => suspensions > 0);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(90 * MINUTE_MS);
  expect(network.postCount()).toBeGreaterThan(0);
});

test("an approval that expired during a suspension is not used after it", async () => {
  let isBlocked = false;
  let onQuery = () => {};
  const externalBlockers: ExternalBlockers = {
    blocks() {
      onQuery();
      return Promise.resolve({ ok: true, value: isBlocked });
    },
  };
  const policy = rebootOffline({ mode: "approve", forMs: MINUTE_MS, blockedBy: [{ kind: "query", query: "up" }] });
  const network = await startQuietNetwork({ config: remediationConfig([policy]), externalBlockers });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  isBlocked = true;
  await network.advance(2 * MINUTE_MS);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(5 * MINUTE_MS);
  let isSuspended = false;
  onQuery = () => {
    if (!isSuspended) suspend(network, 12 * HOUR_MS);
    [isSuspended, isBlocked] = [true, false];
  };
  await network.advance(3 * HOUR_MS);
  expect(isSuspended).toBe(true);
  expect(network.postCount()).toBe(0);
  expect(network.controller().view.approvals()).toHaveLength(1);
});

test.each([
  ["short", 4 * MINUTE_MS],
  ["long", 6 * HOUR_MS],
])("our quarantine that ends on time after a %s suspension was not lifted by an operator", async (_, suspendedMs) => {
  const quarantineMs = 30 * MINUTE_MS;
  const policy = rebootOffline({
    when: 'node.status != "online"',
    steps: [{ ...steps.quarantine, durationMs: quarantineMs }],
  });
  const network = await startQuietNetwork({ config: remediationConfig([policy]) });
  const [node] = network.nodes();
  const recoverAt = network.daemon.clock.now() + 12 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advanceUntil(() => network.postCount() > 0);
  await network.advance(10 * MINUTE_MS);
  suspend(network, suspendedMs);
  // The service ends it by its own clock, which did not stand still.
  await network.advance(Math.max(0, 20 * MINUTE_MS - suspendedMs));
  network.interventions.liftQuarantine(node!);
  await network.advance(3 * MINUTE_MS);
  expect(episodeStates(network)).not.toContain("freed");
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  expect(network.explain(node!).holds).toEqual([]);
});

const LAST_PAGE = "/v1/nodes?page=2";

/** Suspends the machine for eight hours, after which neither the last page of the list nor a node on it can be read. */
function suspendAndHide(network: QuietNetwork, node: string): void {
  suspend(network, 8 * HOUR_MS);
  const skew = { fault: { kind: "clock_skew", skewMs: 8 * HOUR_MS } } as const;
  const unreadable = [LAST_PAGE, `/v1/nodes/${node}`];
  network.setFaults([skew, ...unreadable.map((match) => ({ fault: { kind: "reset" }, match }) as const)]);
}

test("a step whose node can't be read any more after a suspension ends in doubt, and holds no other node", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: MINUTE_MS })]),
    settings: { ...listsOnlySettings, pageLimit: 50, maxMissing: 0.2 },
  });
  const { ids } = network.daemon.snapshots.last!.fleet;
  const [other, node] = [ids.at(0)!, ids.at(-1)!];
  network.failNode(node);
  await network.advanceUntil(() => network.postCount() > 0);
  suspendAndHide(network, node);
  await network.advance(5 * HOUR_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  await network.advance(2 * HOUR_MS);
  expect(actionLines(network)).toEqual(["reboot: in_doubt"]);
  network.failNode(other);
  await network.advance(10 * MINUTE_MS);
  expect(network.actions().map((action) => action.node)).toEqual([node, other]);
});

test("a step whose node can't be read after a suspension also ends if the walk before it showed that the node had returned", async () => {
  let onPage = () => {};
  const wrapTransport = withAnswers(
    ({ path }) => path.startsWith(LAST_PAGE),
    () => onPage(),
  );
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: MINUTE_MS })]),
    settings: { ...listsOnlySettings, pageLimit: 50, maxMissing: 0.2 },
    wrapTransport,
  });
  const node = network.daemon.snapshots.last!.fleet.ids.at(-1)!;
  network.failNode(node);
  await network.advanceUntil(() => network.postCount() > 0);
  network.interventions.leaveFleet(node, network.daemon.clock.now() + 5 * MINUTE_MS);
  await network.advanceUntil(() => episodeStates(network).includes("suspended"));
  let isSuspended = false;
  onPage = () => {
    if (isSuspended || !network.nodes().includes(node)) return;
    isSuspended = true;
    suspendAndHide(network, node);
  };
  await network.advanceUntil(() => isSuspended);
  await network.advance(5 * HOUR_MS);
  expect([actionLines(network), episodeStates(network)]).toEqual([["reboot: null"], ["suspended"]]);
  await network.advance(3 * HOUR_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective"]);
  // The node counts as lost until it is observed again.
  expect(episodeStates(network)).toEqual(["suspended"]);
});
