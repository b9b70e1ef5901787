import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { nodesActedOn, notificationsOf } from "../../../harness/remediation-results.ts";

describe("a region with fewer nodes than an incident needs that is offline at the first evaluation", () => {
  /** So that only the correlated failure holds the region. */
  const safety = { maxUnhealthy: { share: 1 }, breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS } };
  const startSmall = () =>
    startQuietNetwork({
      config: remediationConfig([rebootOffline()], safety),
      scenario: { nodes: 60 },
      warmUpMs: 0,
    });
  const SMALL_REGION = "us-west";

  test("is an incident if none of its nodes is online, and its nodes are healed after six hours", async () => {
    const network = await startSmall();
    const region = network.nodes(SMALL_REGION);
    expect(region).toHaveLength(4);
    for (const node of region) network.failNode(node);
    await network.advance(5.5 * HOUR_MS);
    expect(network.postCount()).toBe(0);
    for (const node of region) expect(network.holdReasons(node)).toEqual(["correlated"]);
    expect(notificationsOf(network, "incident")).toMatchObject([{ region: SMALL_REGION }]);
    await network.advance(2 * HOUR_MS);
    expect(nodesActedOn(network).toSorted()).toEqual(region.toSorted());
  });

  test("is none if one of its nodes is online, because the others may have failed one by one", async () => {
    const network = await startSmall();
    const failing = network.nodes(SMALL_REGION).slice(1);
    for (const node of failing) network.failNode(node);
    await network.advance(HOUR_MS);
    expect(nodesActedOn(network).toSorted()).toEqual(failing.toSorted());
    expect(notificationsOf(network, "incident")).toEqual([]);
  });

  test("is none if it has only one node", async () => {
    const network = await startSmall();
    const [node] = network.nodes("eu-north");
    network.failNode(node!);
    await network.advance(HOUR_MS);
    expect(nodesActedOn(network)).toEqual([node]);
  });

  test("is an incident if it went offline while the daemon was down", async () => {
    const network = await startSmall();
    await network.advance(30 * MINUTE_MS);
    const region = network.nodes(SMALL_REGION);
    await network.stop();
    for (const node of region) network.failNode(node);
    await network.restart({ downMs: HOUR_MS });
    await network.advance(HOUR_MS);
    expect(network.postCount()).toBe(0);
    for (const node of region) expect(network.holdReasons(node)).toEqual(["correlated"]);
  });
});
