import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { ok, type Result } from "../../../src/base/result.ts";
import { type QuietNetwork, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";

const query = { kind: "query", query: "up == 0" } as const;

/** Starts a network with a failed node, whose policy asks `blocks` before it acts. */
async function startWithBlockers(blocks: () => Promise<Result<boolean, string>>): Promise<QuietNetwork> {
  const config = remediationConfig([rebootOffline({ blockedBy: [query] })]);
  const { network } = await startWithFailedNode({ config, externalBlockers: { blocks } });
  return network;
}

const failureOf = (network: QuietNetwork) => network.controller().view.status().roundFailure;

/** Returns the minutes since a round succeeded, as the metric states it. */
async function minutesSinceSuccess({ daemon }: QuietNetwork): Promise<number> {
  const page = await daemon.metrics.render("text");
  const [, at] = /^proxywarden_remediation_last_success_timestamp_seconds (\S+)$/m.exec(page) ?? [];
  return Math.round((daemon.clock.now() - Number(at) * SECOND_MS) / MINUTE_MS);
}

test("rounds that fail are shown with their error until one succeeds", async () => {
  let isBroken = true;
  const network = await startWithBlockers(() =>
    isBroken ? Promise.reject(new Error("this must not happen")) : Promise.resolve(ok(false)),
  );
  expect(failureOf(network)).toBeNull();
  await network.advanceUntil(() => failureOf(network) !== null);
  await network.advance(20 * MINUTE_MS);
  expect(failureOf(network)).toMatch(/^no remediation round has succeeded for 2\dm(\d+s)?: this must not happen$/);
  expect(await minutesSinceSuccess(network)).toBeGreaterThanOrEqual(20);
  expect(network.postCount()).toBe(0);
  isBroken = false;
  await network.advance(2 * MINUTE_MS);
  expect(failureOf(network)).toBeNull();
  expect(await minutesSinceSuccess(network)).toBeLessThanOrEqual(1);
  expect(network.postCount()).toBe(1);
  // The network would report the failed rounds as a defect.
  network.kill();
});

test("a round that does not end is shown after 15 minutes", async () => {
  const network = await startWithBlockers(() => new Promise(() => {}));
  await network.advance(15 * MINUTE_MS);
  expect(failureOf(network)).toBeNull();
  await network.advance(10 * MINUTE_MS);
  expect(failureOf(network)).toMatch(
    /^no remediation round has succeeded for \d+m(\d+s)?: the current one has not ended$/,
  );
  network.kill();
});

test("a daemon that has not read its fleet yet has no failed round", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), warmUpMs: 0 });
  network.setFault({ kind: "status", status: 500 });
  await network.advance(30 * MINUTE_MS);
  expect(failureOf(network)).toBeNull();
  expect(await minutesSinceSuccess(network)).toBeLessThanOrEqual(1);
});
