import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { listsAndDetailsSettings, startQuietNetwork } from "../../harness/quiet-network.ts";
import { episodeStates } from "../../harness/remediation-results.ts";

test("no action is sent while the detail of its node, which a cache keeps, contradicts the list", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    settings: listsAndDetailsSettings,
  });
  const [node] = network.nodes();
  network.setFault({ kind: "cached", maxAgeMs: HOUR_MS }, "GET /v1/nodes/");
  await network.advance(20 * MINUTE_MS);
  network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({ state: "withdrawn", detail: expect.stringContaining("contradicts") });
  network.setFault(null);
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["healed"]);
});
