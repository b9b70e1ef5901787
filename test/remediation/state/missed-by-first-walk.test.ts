import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import { listsOnlySettings, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { actionLines, episodeStates, notificationsOf } from "../../harness/remediation-results.ts";
import { changingBodies } from "../../harness/simulator/changed-responses.ts";

/** Starts a fleet whose list can miss one node without another total, as a list that shifts while it is read does. */
async function startWithShiftingList(changed: Partial<PolicySpec> = {}) {
  let hidden: string | null = null;
  const wrapTransport = changingBodies((body, { path }) => {
    if (!path.startsWith("/v1/nodes?")) return null;
    const page = JSON.parse(body);
    return JSON.stringify({ ...page, data: page.data.filter(({ id }: { id: string }) => id !== hidden) });
  });
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline(changed)]), wrapTransport });
  /** Restarts the daemon, whose first walk misses the node. */
  async function restartMissing(node: string): Promise<void> {
    const { collected } = network.daemon;
    hidden = node;
    await network.restart();
    await network.advanceUntil(() => network.daemon.collected !== collected && walks(network) > 0);
    hidden = null;
  }
  return { network, restartMissing };
}

const walks = ({ daemon }: QuietNetwork) => daemon.snapshots.last?.fleet.lastWalk?.completeWalks ?? 0;

test("a node that only the first walk after a restart misses is not lost", async () => {
  const { network, restartMissing } = await startWithShiftingList();
  const [node] = network.nodes("us-east");
  network.failNode(node!, "forced_reboot");
  await network.advanceUntil(() => network.postCount() === 1);
  await restartMissing(node!);
  await network.advance(45 * MINUTE_MS);
  expect(notificationsOf(network, "lost")).toEqual([]);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("a node that only the first walk after a restart misses keeps its pending timer", async () => {
  const { network, restartMissing } = await startWithShiftingList({ forMs: 20 * MINUTE_MS });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(15 * MINUTE_MS);
  await restartMissing(node!);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("a node that only the first walk after a restart misses keeps its request for approval", async () => {
  const { network, restartMissing } = await startWithShiftingList({ mode: "approve" });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advanceUntil(() => network.actions().length === 1);
  await restartMissing(node!);
  await network.advance(10 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "awaiting" }]);
});

test("a node on a page that can't be read after a restart keeps its pending timer", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: 20 * MINUTE_MS })]),
    // One of 60 nodes may be missing, so the walks are complete without the second page.
    settings: { ...listsOnlySettings, pageLimit: 59 },
  });
  const node = network.daemon.snapshots.last!.fleet.ids.at(-1)!;
  network.failNode(node);
  await network.advance(15 * MINUTE_MS);
  network.setFault({ kind: "reset" }, "/v1/nodes?page=2");
  await network.restart();
  await network.advance(3 * MINUTE_MS);
  expect(network.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ completeWalks: 3, seenNodes: 59 });
  network.setFault(null);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});
