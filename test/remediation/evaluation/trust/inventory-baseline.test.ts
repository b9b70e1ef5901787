import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import { startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { trustReasons } from "../../../harness/remediation-results.ts";

const listsTwice = { kind: "duplicates", records: 60, newIds: true } as const;

test("a single walk that shows each node under two ids does not make later walks look shrunk", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault(listsTwice, "GET /v1/nodes?");
  await network.advance(MINUTE_MS);
  network.setFault(null);
  await network.advance(3 * MINUTE_MS);
  expect(network.daemon.snapshots.last!.fleet.count).toBe(60);
  expect(trustReasons(network)).toEqual([]);
  await network.restart();
  await network.advance(HOUR_MS);
  expect(trustReasons(network)).toEqual([]);
});

test("the first walk is the baseline of a new journal", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    warmUpMs: 30 * SECOND_MS,
  });
  network.setFault({ kind: "vanished", missing: 0.4 });
  await network.advance(2 * MINUTE_MS);
  expect(trustReasons(network)).toContain("inventory_shrunk");
});

test("a larger fleet is the baseline once two walks have shown it", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault(listsTwice, "GET /v1/nodes?");
  await network.advance(2 * MINUTE_MS);
  expect(network.controller().view.status().largestWalkNodes).toBe(120);
  network.setFault(null);
  await network.advance(HOUR_MS);
  expect(trustReasons(network)).toContain("inventory_shrunk");
});

test("the baseline is kept for another seven days although each process reads the list only once", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  for (let day = 0; day < 8; day++) {
    await network.restart({ downMs: DAY_MS });
    await network.advance(30 * SECOND_MS);
  }
  expect(network.controller().view.status().largestWalkNodes).toBe(60);
});

test("the hold after untrusted data names why it was not trusted", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(10 * MINUTE_MS);
  network.setFault(null);
  await network.advance(5 * MINUTE_MS);
  expect(network.controller().view.status().trust).toMatchObject([
    {
      reason: "sight_cooldown",
      detail: expect.stringMatching(/^fleet data was not trusted until recently \(last_seen_stale\); the hold ends in/),
    },
  ]);
});

test("nodes whose last_seen is later than the service's Date are counted if it hides that the others are stale", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advance(10 * MINUTE_MS);
  network.setFault({ kind: "wrong_date", offsetMs: -5 * MINUTE_MS });
  await network.advance(10 * MINUTE_MS);
  expect(network.controller().view.status().trust).toMatchObject([
    { reason: "last_seen_stale", detail: expect.stringContaining("; ignoring 59 nodes whose last_seen is later") },
  ]);
});
