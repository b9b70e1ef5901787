import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import type { Transport } from "../../../../src/model/ports.ts";
import type { EpochMs } from "../../../../src/model/time.ts";
import { defaultServiceOptions } from "../../../../src/simulator/default-scenarios.ts";
import {
  churnAfterReboots,
  listsAndDetailsSettings,
  ONE_NODE,
  onePerRegion,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { defaultSafety, rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";
import { actionLines, episodeStates } from "../../../harness/remediation-results.ts";
import { changingBodies, changingRecords } from "../../../harness/simulator/changed-responses.ts";

/** Wraps the service so that it changes the `last_seen` of each record, in milliseconds. */
const withLastSeen = (lastSeenOf: (record: { readonly id: string }, at: EpochMs) => EpochMs) =>
  changingBodies((body) =>
    JSON.stringify(
      JSON.parse(body, (_key, value) =>
        typeof value?.last_seen === "string"
          ? { ...value, last_seen: new Date(lastSeenOf(value, Date.parse(value.last_seen))).toISOString() }
          : value,
      ),
    ),
  );

test("no action is sent while the detail of its node, which a cache keeps, contradicts the list", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    settings: listsAndDetailsSettings,
  });
  const [node] = network.nodes();
  network.setFault({ kind: "cached", maxAgeMs: HOUR_MS }, "GET /v1/nodes/");
  await network.advance(16 * MINUTE_MS);
  network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({ state: "withdrawn", detail: expect.stringContaining("contradicts") });
  network.setFault(null);
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["healed"]);
});

describe("details that a cache keeps while the list shows that the node has reported since", () => {
  const within = 5 * MINUTE_MS;
  const rebootFull = rebootOffline({
    when: 'node.status == "online" && node.disk_usage > 0.9',
    forMs: 30 * MINUTE_MS,
    steps: [steps.reboot, steps.force].map((step) => ({ ...step, verify: { withinMs: within, expect: null } })),
  });

  const every = { kind: "every", intervalMs: MINUTE_MS } as const;
  const settings = { schedules: { ...listsAndDetailsSettings.schedules!, details: every } };
  const scenario = { nodes: 10 };
  const cached = { kind: "cached", maxAgeMs: 20 * MINUTE_MS } as const;

  test.each([
    ["", 0],
    [", even if the clocks of the nodes are hours behind", 8 * HOUR_MS],
  ])("do not cause an action on a node that recovered by itself%s", async (_, behindMs) => {
    const wrapTransport = withLastSeen((_record, at) => at - behindMs);
    const safety = { trust: { ...defaultSafety.trust, maxFreshestLastSeenMs: 9 * HOUR_MS } };
    const config = remediationConfig([rebootFull], safety);
    const network = await startQuietNetwork({ config, settings, scenario, wrapTransport });
    const [node] = network.nodes();
    const since = network.daemon.clock.now();
    network.interventions.setLoad(node!, { resource: "disk", since, overMs: 0, level: 0.99, until: since + DAY_MS });
    await network.advance(20 * MINUTE_MS);
    network.setFault(cached, "GET /v1/nodes/");
    await network.advance(5 * MINUTE_MS);
    network.interventions.setLoad(node!, null);
    await network.advance(40 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
    expect(network.actions()[0]).toMatchObject({ state: "withdrawn", detail: expect.stringContaining("last_seen") });
  });

  test("do not cause a second step on a node that the first one healed", async () => {
    const network = await startQuietNetwork({ config: remediationConfig([rebootFull]), settings, scenario });
    network.interventions.startFailure(network.nodes()[0]!, { failureMode: "full", remedy: "reboot" });
    await network.advanceUntil(() => network.postCount() > 0);
    network.setFault(cached, "GET /v1/nodes/");
    await network.advance(40 * MINUTE_MS);
    expect(actionLines(network)).toEqual(["reboot: in_doubt"]);
  });
});

test("a node is healed within about an hour although its detail always states an older last_seen than the list", async () => {
  const service = { ...defaultServiceOptions, detailLastSeenEveryMs: 20 * MINUTE_MS };
  const config = remediationConfig([rebootOffline()]);
  const network = await startQuietNetwork({ config, scenario: { service } });
  await network.advance(10 * MINUTE_MS);
  network.failNode(network.nodes()[0]!);
  await network.advance(50 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({ state: "withdrawn", detail: expect.stringContaining("last_seen") });
  await network.advance(90 * MINUTE_MS);
  expect(actionLines(network).at(-1)).toBe("reboot: verified");
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("an online node is healed within hours although the service updates last_seen in details only every 15 min", async () => {
  const service = { ...defaultServiceOptions, detailLastSeenEveryMs: 15 * MINUTE_MS };
  const spec = rebootOffline({ when: 'node.status == "online" && node.disk_usage > 0.9', forMs: MINUTE_MS });
  const network = await startQuietNetwork({
    config: remediationConfig([spec]),
    settings: listsAndDetailsSettings,
    scenario: { nodes: 10, service },
  });
  await network.advance(10 * MINUTE_MS);
  network.interventions.startFailure(network.nodes()[0]!, { failureMode: "full", remedy: "reboot" });
  await network.advance(6 * HOUR_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

/** Wraps the service so that the list shows a node as offline. */
const listingAsOffline = (node: string) =>
  changingRecords("nodes", (record) => (record.id === node ? { ...record, status: "offline" } : record));

test("a node whose detail never shows what the list shows is read ever more rarely, and the hold says why", async () => {
  const node = ONE_NODE;
  const config = remediationConfig([rebootOffline()]);
  const network = await startQuietNetwork({ config, wrapTransport: listingAsOffline(node) });
  await network.advance(4 * HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions().length).toBeLessThan(16);
  const [blocker, ...others] = network.explain(node).policies[0]!.blockers;
  expect(others).toEqual([]);
  expect(blocker).toMatchObject({
    reason: "backoff",
    detail: expect.stringContaining("(the node is no longer unhealthy)"),
  });
});

test.each([
  ["", 0],
  [", also if the clock of a node is a day ahead", DAY_MS],
])(
  "a step is not ineffective because of responses that a cache has kept since before it was sent%s",
  async (_, aheadMs) => {
    const verify = { withinMs: 2 * MINUTE_MS, expect: null };
    const spec = rebootOffline({ steps: [steps.reboot, steps.force].map((step) => ({ ...step, verify })) });
    let ahead = "";
    const network = await startQuietNetwork({
      config: remediationConfig([spec]),
      wrapTransport: withLastSeen(({ id }, at) => at + (id === ahead ? aheadMs : 0)),
    });
    const [node, other] = network.nodes();
    ahead = other!;
    network.failNode(node!);
    await network.advance(5 * MINUTE_MS);
    network.setFault({ kind: "cached", maxAgeMs: 20 * MINUTE_MS }, "GET /v1/nodes");
    await network.advance(20 * MINUTE_MS);
    network.setFault(null);
    await network.advance(30 * MINUTE_MS);
    expect(actionLines(network)).toEqual(["reboot: verified"]);
    expect(episodeStates(network)).toEqual(["healed"]);
  },
);

test("a step is verified although the service always states a last_seen that is hours old", async () => {
  const safety = { trust: { ...defaultSafety.trust, maxFreshestLastSeenMs: 9 * HOUR_MS } };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], safety),
    wrapTransport: withLastSeen((_record, at) => at - 8 * HOUR_MS),
  });
  network.failNode(network.nodes()[0]!);
  await network.advance(2 * HOUR_MS);
  expect(actionLines(network)).toEqual(["reboot: verified"]);
});

test("a node that left the list after an action stays lost if only an outdated replica lists it", async () => {
  const outdated = new Map<string, Uint8Array>();
  let walks = 0;
  let shownAt = Number.POSITIVE_INFINITY;
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (!answer.ok || !request.path.startsWith("/v1/nodes?")) return answer;
      const body = ++walks === shownAt ? outdated.get(request.path) : undefined;
      if (shownAt === Number.POSITIVE_INFINITY) outdated.set(request.path, answer.value.body);
      return body === undefined ? answer : { ok: true, value: { ...answer.value, body } };
    },
  });
  const scenario = { nodes: 60, churn: churnAfterReboots({ vanishAfterReboot: 1 }) };
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, maxDisrupted: { share: 1, amount: 1 } });
  const network = await startQuietNetwork({ config, scenario, wrapTransport });
  const [first, second] = onePerRegion(network, 2);
  network.failNode(first!);
  await network.advance(MINUTE_MS);
  network.failNode(second!);
  await network.advance(4 * MINUTE_MS);
  shownAt = 0;
  await network.advance(20 * MINUTE_MS);
  expect(network.nodes()).not.toContain(first);
  expect(network.holdReasons(second!)).toEqual(["disrupted"]);
  shownAt = walks + 1;
  await network.advance(5 * MINUTE_MS);
  expect(walks).toBeGreaterThan(shownAt);
  expect(network.postCount()).toBe(1);
});
