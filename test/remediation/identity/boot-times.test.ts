import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import type { ServiceOptions } from "../../../src/config/schema/scenario.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { defaultScenario, defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { listsAndDetailsSettings, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { actionLines, episodeStates } from "../../harness/remediation-results.ts";
import { changingBodies } from "../../harness/simulator/changed-responses.ts";

interface Setting {
  readonly spec?: Partial<PolicySpec>;
  readonly createdAt?: ServiceOptions["createdAt"];
  readonly wrapTransport?: (service: Transport) => Transport;
}

/** Starts a network that states boot times as `created_at`. An id may return as another node. */
async function startNetwork({ spec = {}, createdAt = "boot", wrapTransport = (service) => service }: Setting = {}) {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline(spec)]),
    scenario: {
      nodes: 20,
      service: { ...defaultServiceOptions, createdAt },
      churn: { ...defaultScenario.churn, reuseIds: true },
    },
    settings: listsAndDetailsSettings,
    wrapTransport,
  });
  return { network, node: network.nodes("us-east")[0]! };
}

/** Has a node rebooted, and replaces it during the reboot, after an absence that no walk shows if it is short. */
async function replaceDuringReboot(network: QuietNetwork, node: string, goneMs: number) {
  network.failNode(node, "operator");
  await network.advanceUntil(() => network.postCount() === 1);
  network.interventions.leaveFleet(node, network.daemon.clock.now() + goneMs);
  await network.advance(goneMs + 9 * MINUTE_MS);
}

const isProven = (network: QuietNetwork) => runAtOnce(network.controller().view.policies())[0]!.proven;

describe("a node whose created_at is the time of its boot", () => {
  test("is healed by our reboot after clear_for, and proves its policy", async () => {
    const { network, node } = await startNetwork();
    network.failNode(node);
    await network.advanceUntil(() => network.postCount() === 1);
    await network.advance(8 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["recovering"]);
    expect(actionLines(network)).toEqual(["reboot: verified"]);
    expect(isProven(network)).toBe(true);
    await network.advance(10 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["healed"]);
  });

  test("gets the next step if our reboot did not help, and is given up after the last one", async () => {
    const { network, node } = await startNetwork({ spec: { when: "node.cpu_usage > 0.9" } });
    const load = { resource: "cpu", overMs: 0, level: 1, until: Number.POSITIVE_INFINITY } as const;
    network.interventions.setLoad(node, { ...load, since: network.daemon.clock.now() });
    await network.advance(45 * MINUTE_MS);
    expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: ineffective"]);
    expect(episodeStates(network)).toEqual(["given_up"]);
  });

  test("is not healed by our reboot if its id left the list in the meantime", async () => {
    const { network, node } = await startNetwork();
    await replaceDuringReboot(network, node, 4 * MINUTE_MS);
    expect(network.status(node)).toBe("online");
    expect(episodeStates(network)).toEqual(["withdrawn"]);
    expect(isProven(network)).toBe(false);
  });

  test("is not healed by our reboot if its id has another name now", async () => {
    let isRenamed = false;
    let node = "";
    const wrapTransport = changingBodies((body) =>
      isRenamed ? body.replace(`"id":"${node}","name":"`, "$&new-") : null,
    );
    const started = await startNetwork({ wrapTransport });
    node = started.node;
    started.network.failNode(node);
    await started.network.advanceUntil(() => started.network.postCount() === 1);
    isRenamed = true;
    await started.network.advance(9 * MINUTE_MS);
    expect(episodeStates(started.network)).toEqual(["withdrawn"]);
    expect(isProven(started.network)).toBe(false);
  });
});

test("an id that passes to another node during our reboot is not healed if the service states creation times", async () => {
  const { network, node } = await startNetwork({ createdAt: "creation" });
  await replaceDuringReboot(network, node, 2 * SECOND_MS);
  expect(network.status(node)).toBe("online");
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(isProven(network)).toBe(false);
});
