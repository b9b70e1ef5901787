import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { changingRecords } from "../../../harness/simulator/changed-responses.ts";

test("a list that shows a node online, as it was an hour ago, restarts the `for` of the node", async () => {
  let olderNode: string | null = null;
  const wrapTransport = changingRecords("nodes", (record) =>
    record.id === olderNode
      ? { ...record, status: "online", last_seen: new Date(Date.parse(String(record.last_seen)) - HOUR_MS) }
      : record,
  );
  const config = remediationConfig([rebootOffline({ forMs: 4 * MINUTE_MS })]);
  const network = await startQuietNetwork({ config, wrapTransport });
  const node = network.nodes()[0]!;
  network.failNode(node);
  await network.advance(3 * MINUTE_MS);
  olderNode = node;
  await network.advance(MINUTE_MS);
  olderNode = null;
  // explain shows why the timer has not reached four minutes.
  const [explained] = network.explain(node).policies;
  expect(explained!.timer).toMatchObject({ state: "pending" });
  const sinceOtherStatusMs = network.daemon.clock.now() - explained!.otherStatusAt!;
  expect(sinceOtherStatusMs).toBeLessThanOrEqual(MINUTE_MS);
  expect(explained!.timer!.trueMs).toBeLessThanOrEqual(sinceOtherStatusMs);
  await network.advance(3 * MINUTE_MS);
  expect(network.status(node)).toBe("offline");
  expect(network.postCount()).toBe(0);
  await network.advance(3 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});
