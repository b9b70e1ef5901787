import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { type ReplyCount, replyCounts } from "../../../../src/simulator/http/service.ts";
import {
  listsOnlySettings,
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";

const busy = rebootOffline({ name: "hot", when: "node.cpu_usage > 0.9", forMs: 10 * MINUTE_MS });
const everyHour = { kind: "every", intervalMs: HOUR_MS } as const;
const settings = { schedules: { ...listsOnlySettings.schedules!, nodes: everyHour, details: everyHour } };

/** Starts a fleet that is read every hour, with actions on `count` nodes that are to be verified. */
async function startActing(count: number): Promise<QuietNetwork> {
  const config = remediationConfig([busy], withoutLimits);
  const network = await startQuietNetwork({ config, settings, warmUpMs: 3 * HOUR_MS });
  const load = { resource: "cpu", overMs: 0, level: 1, until: Number.POSITIVE_INFINITY } as const;
  for (const node of onePerRegion(network, count))
    network.interventions.setLoad(node, { ...load, since: network.daemon.clock.now() });
  await network.advanceUntil(() => network.postCount() === count);
  return network;
}

const failedReads = ({ daemon }: QuietNetwork) =>
  daemon.log.lines.filter(({ message }) => message === "verification read failed").length;

test("verification reads are rare while the service answers none, however many actions are to be verified", async () => {
  const network = await startActing(4);
  network.setFault({ kind: "status", status: 503 }, "GET");
  await network.advance(10 * MINUTE_MS);
  const before = failedReads(network);
  await network.advance(30 * MINUTE_MS);
  expect(failedReads(network) - before).toBeGreaterThanOrEqual(5);
  expect(failedReads(network) - before).toBeLessThanOrEqual(6);
});

test("verification reads resume soon after the service answers again", async () => {
  const network = await startActing(4);
  network.setFault({ kind: "status", status: 503 }, "GET");
  await network.advance(30 * MINUTE_MS);
  network.setFault(null);
  await network.advance(7 * MINUTE_MS);
  expect(network.actions().filter(({ state }) => state === "ended")).toHaveLength(4);
});

test("a node is not read again while a step waits for a walk of the sessions", async () => {
  const isDetail = ({ endpoint }: ReplyCount) => endpoint === "GET /v1/nodes/{id}";
  const sessionsEveryHour = { schedules: { ...settings.schedules, details: null, sessions: everyHour } };
  const network = await startQuietNetwork({ config: remediationConfig([]), settings: sessionsEveryHour });
  const [node] = network.nodes();
  const policy = rebootOffline({
    match: `node.id == "${node}"`,
    when: "sessions.total >= 0",
    forMs: 0,
    steps: [steps.disconnect],
  });
  await network.reload({ config: remediationConfig([policy], withoutLimits), settings: sessionsEveryHour });
  await network.advanceUntil(() => network.postCount() === 1);
  const reads = () =>
    replyCounts(network.daemon.service)
      .filter(isDetail)
      .reduce((sum, { count }) => sum + count, 0);
  const before = reads();
  await network.advance(10 * MINUTE_MS);
  expect(reads() - before).toBe(1);
});
