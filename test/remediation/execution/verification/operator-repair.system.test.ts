import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import { runAtOnce } from "../../../../src/base/steps.ts";
import {
  listsAndDetailsSettings,
  ONE_NODE,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../../harness/policies.ts";
import { actionLines, episodeStates } from "../../../harness/remediation-results.ts";

const oneReboot = remediationConfig([rebootOffline({ steps: [steps.reboot] })]);
const isProven = (network: QuietNetwork) => runAtOnce(network.controller().view.policies())[0]!.proven;

test("a node that an operator repairs after our reboot had no effect does not count as healed, and does not prove the canary", async () => {
  const network = await startQuietNetwork({ config: oneReboot });
  const [node] = network.nodes("us-east");
  const healAt = network.daemon.clock.now() + 10 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "operator", recoverAt: healAt });
  await network.advance(12 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.status(node!)).toBe("maintenance");
  await network.advance(30 * MINUTE_MS);
  expect(network.status(node!)).toBe("online");
  expect(actionLines(network)).toEqual(["reboot: in_doubt"]);
  expect(network.actions()).toMatchObject([{ detail: expect.stringContaining("maintenance") }]);
  expect(episodeStates(network)).toEqual(["cleared"]);
  expect(isProven(network)).toBe(false);
});

test("a node that an operator quarantines after our reboot does not count as healed when it is released", async () => {
  const { network, node } = await startWithFailedNode({ config: oneReboot, remedy: "operator" });
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(MINUTE_MS);
  network.interventions.quarantine(node, network.daemon.clock.now() + 3 * MINUTE_MS);
  network.interventions.startFailure(node, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: network.daemon.clock.now(),
  });
  await network.advance(40 * MINUTE_MS);
  expect(network.status(node)).toBe("online");
  expect(episodeStates(network)).toEqual(["cleared"]);
  expect(isProven(network)).toBe(false);
});

test.each([180, 200])("a node list that is cached for %d s does not end our quarantine", async (maxAgeSeconds) => {
  const network = await startQuietNetwork({ config: remediationConfig([]), settings: listsAndDetailsSettings });
  const [node] = network.nodes();
  const when = `node.id == "${node}" && node.status == "online"`;
  await network.reload({ config: remediationConfig([rebootOffline({ when, steps: [steps.quarantine] })]) });
  network.setFault({ kind: "cached", maxAgeMs: maxAgeSeconds * SECOND_MS }, "GET /v1/nodes?");
  await network.advance(30 * MINUTE_MS);
  expect(network.status(node!)).toBe("quarantined");
  expect(episodeStates(network)).toEqual(["quarantined"]);
});

describe("a node in our quarantine that reports nothing", () => {
  /** A network in which the daemon quarantined a node whose last_seen stays the same. */
  async function startWithSilentNode() {
    let silentNode = "";
    const network = await startQuietNetwork({
      config: remediationConfig([]),
      settings: listsAndDetailsSettings,
      wrapTransport: (service) => ({
        ...service,
        async request(request, signal) {
          const sent = await service.request(request, signal);
          if (!sent.ok || silentNode === "" || sent.value.status !== 200) return sent;
          const body = Buffer.from(sent.value.body)
            .toString("utf8")
            .replace(new RegExp(`("id":"${silentNode}".*?"last_seen":)"[^"]*"`), '$1"2026-03-01T00:03:00Z"');
          return { ok: true, value: { ...sent.value, body: Buffer.from(body) } };
        },
      }),
    });
    silentNode = network.nodes()[0]!;
    const when = `node.id == "${silentNode}" && node.status == "online"`;
    await network.reload({ config: remediationConfig([rebootOffline({ when, steps: [steps.quarantine] })]) });
    return { network, silentNode };
  }

  test.each([0, 5, -5])("keeps it under a cached list, even if the wall clock changes by %i h", async (hours) => {
    const { network, silentNode } = await startWithSilentNode();
    network.setFault({ kind: "cached", maxAgeMs: 10 * MINUTE_MS }, "GET /v1/nodes?");
    await network.advanceUntil(() => network.postCount() === 1);
    network.daemon.clock.stepWallClock(hours * HOUR_MS);
    await network.advance(30 * MINUTE_MS);
    expect(network.status(silentNode)).toBe("quarantined");
    expect(episodeStates(network)).toEqual(["quarantined"]);
  });

  test("is freed if an operator lifts the quarantine", async () => {
    const { network, silentNode } = await startWithSilentNode();
    await network.advanceUntil(() => network.postCount() === 1);
    await network.advance(10 * MINUTE_MS);
    network.interventions.liftQuarantine(silentNode);
    await network.advance(5 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["freed"]);
  });
});

test.each([5, -5])(
  "a node whose quarantine an operator lifts is freed although the wall clock changed by %i h",
  async (hours) => {
    const when = `node.id == "${ONE_NODE}"`;
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline({ when, steps: [steps.quarantine] })]),
    });
    await network.advanceUntil(() => network.postCount() === 1);
    network.daemon.clock.stepWallClock(hours * HOUR_MS);
    await network.advance(10 * MINUTE_MS);
    network.interventions.liftQuarantine(ONE_NODE);
    await network.advance(3 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["freed"]);
  },
);
