import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { ServiceOptions } from "../../../src/config/schema/scenario.ts";
import { defaultScenario, defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import {
  listsAndDetailsSettings,
  noFailureRates,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates } from "../../harness/remediation-results.ts";
import { changingBodies } from "../../harness/simulator/changed-responses.ts";

/** Details are collected, because only they have `created_at` (spec, section 2.1). */

/** Returns how often a `created_at` was counted as one that changes too often. */
async function problems({ daemon }: QuietNetwork): Promise<number> {
  const page = await daemon.metrics.render("text");
  return Number(/records_rejected_total\{collector="details",reason="changing_created_at"\} (\d+)/.exec(page)?.[1]);
}

/** Wraps the service so that the details of nodes have another `created_at`. */
const changingDetails = (createdAtOf: (detail: Readonly<Record<"id" | "status" | "created_at", string>>) => string) =>
  changingBodies((body, { method, path }) => {
    if (method !== "GET" || !path.startsWith("/v1/nodes/")) return null;
    const detail = JSON.parse(body);
    return JSON.stringify({ ...detail, created_at: createdAtOf(detail) });
  });

/** After three hours a third episode is possible, and the fourth is not. */
const RETRY = { episodes: 2, everyMs: 1.5 * HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
const FAILING_MS = 3 * HOUR_MS;

describe("a node whose created_at", () => {
  test("changes with each boot is not rebooted more often than `retry` allows", async () => {
    const policy = rebootOffline({ retry: RETRY });
    const network = await startQuietNetwork({
      config: remediationConfig([policy]),
      scenario: { nodes: 20, service: { ...defaultServiceOptions, createdAt: "boot" } },
      settings: listsAndDetailsSettings,
    });
    const node = network.nodes()[0]!;
    // It fails again after each reboot.
    for (let minute = 0; minute < FAILING_MS / MINUTE_MS; minute++) {
      if (network.status(node) === "online") network.failNode(node);
      await network.advance(MINUTE_MS);
    }
    expect(network.holdReasons(node)).toEqual(["retry_limit"]);
    expect(network.postCount()).toBeLessThanOrEqual(RETRY.episodes * policy.steps.length);
  });

  /** Wraps the service so that the `created_at` of a node changes once, when its first reboot begins. */
  function changingWithReboot() {
    const rebooted = new Set<string>();
    return changingDetails(({ id, status, created_at: createdAt }) => {
      if (status === "rebooting") rebooted.add(id);
      return rebooted.has(id) ? new Date(START_MS).toISOString() : createdAt;
    });
  }

  test("changes when a reboot begins is still counted as down during the reboot", async () => {
    const limits = { maxInFlight: 2, maxActions: { amount: 60, perMs: HOUR_MS } };
    const config = remediationConfig([rebootOffline()], limits);
    const scenario = { nodes: 50, rates: { ...noFailureRates, rebootMs: 10 * MINUTE_MS } };
    const network = await startQuietNetwork({
      config,
      scenario,
      settings: listsAndDetailsSettings,
      wrapTransport: changingWithReboot(),
    });
    const nodes = network.nodes().filter((_, index) => index % 10 === 0);
    for (const node of nodes) network.failNode(node);
    let mostRebooting = 0;
    for (let second = 0; second < 3_600; second += 30) {
      await network.advance(30 * SECOND_MS);
      const rebooting = nodes.filter((node) => network.status(node) === "rebooting");
      mostRebooting = Math.max(mostRebooting, rebooting.length);
    }
    expect(network.postCount()).toBe(nodes.length);
    expect(mostRebooting).toBe(limits.maxInFlight);
  });

  test("changes when a reboot begins takes the next step if it fails again within clear_for", async () => {
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline()]),
      scenario: { nodes: 20, rates: { ...noFailureRates, rebootMs: 5 * MINUTE_MS } },
      settings: listsAndDetailsSettings,
      wrapTransport: changingWithReboot(),
    });
    const node = network.nodes()[0]!;
    network.failNode(node);
    await network.advanceUntil(() => network.actions()[0]?.outcome === "verified");
    await network.advance(3 * MINUTE_MS);
    network.failNode(node);
    await network.advance(HOUR_MS);
    expect(actionLines(network)).toEqual(["reboot: verified", "forced reboot: verified"]);
    expect(episodeStates(network)).toEqual(["healed"]);
  });

  test("is rounded in some responses stays the same node", async () => {
    let reads = 0;
    const wrapTransport = changingDetails(({ created_at: createdAt }) =>
      reads++ % 2 === 0 ? createdAt : createdAt.replace(/\.\d+Z$/, "Z"),
    );
    const config = remediationConfig([rebootOffline()]);
    const { network } = await startWithFailedNode({ config, settings: listsAndDetailsSettings, wrapTransport });
    await network.advance(40 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["healed"]);
  });

  test("changes with each response is healed, and the problem is counted", async () => {
    const scenario = { nodes: 20, service: { ...defaultServiceOptions, createdAt: "request" as const } };
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline()]),
      scenario,
      settings: listsAndDetailsSettings,
    });
    network.failNode(network.nodes()[0]!);
    await network.advance(HOUR_MS);
    expect(episodeStates(network).at(-1)).toBe("healed");
    expect(network.postCount()).toBe(1);
    expect(await problems(network)).toBeGreaterThan(0);
  });

  describe("changes with each response", () => {
    const startOnRequestTimes = () => {
      const scenario = { nodes: 20, service: { ...defaultServiceOptions, createdAt: "request" as const } };
      const config = remediationConfig([rebootOffline({ retry: RETRY })]);
      return startQuietNetwork({ config, scenario, settings: listsAndDetailsSettings });
    };

    test("and that was given up is not rebooted again after a restart", async () => {
      const network = await startOnRequestTimes();
      const node = network.nodes()[0]!;
      network.failNode(node, "operator");
      await network.advance(3.5 * HOUR_MS);
      expect(network.holdReasons(node)).toEqual(["retry_limit"]);
      const posts = network.postCount();
      await network.restart({ downMs: MINUTE_MS });
      await network.advance(RETRY.everyMs + 15 * MINUTE_MS);
      expect(network.postCount()).toBe(posts);
      expect(network.holdReasons(node)).toEqual(["retry_limit"]);
    });

    test("is healed although the daemon restarts every quarter of an hour", async () => {
      const network = await startOnRequestTimes();
      await network.advance(HOUR_MS);
      network.failNode(network.nodes()[0]!);
      for (let restarts = 0; restarts < 4; restarts++) {
        await network.advance(15 * MINUTE_MS);
        await network.restart({ downMs: SECOND_MS });
      }
      expect(network.postCount()).toBe(1);
      expect(episodeStates(network).at(-1)).toBe("healed");
    });
  });

  test("changes with each read gets no more actions than another node, although only its details are read often", async () => {
    /** Returns how often a node that no action heals was disconnected within the cooldown, and within two hours. */
    async function disconnects(createdAt: ServiceOptions["createdAt"]): Promise<readonly number[]> {
      const policy = rebootOffline({ forMs: 0, steps: [steps.disconnect], retry: { ...RETRY, everyMs: HOUR_MS } });
      const network = await startQuietNetwork({
        config: remediationConfig([policy]),
        scenario: { nodes: 60, service: { ...defaultServiceOptions, createdAt } },
        settings: listsAndDetailsSettings,
      });
      network.failNode(network.nodes()[0]!, "operator");
      await network.advance(25 * MINUTE_MS);
      const withinCooldown = network.postCount();
      await network.advance(95 * MINUTE_MS);
      return [withinCooldown, network.postCount()];
    }
    // As of a node whose created_at stays the same: one within the cooldown, and another after `retry.every`.
    expect(await disconnects("request")).toEqual([1, 2]);
  });

  test("changes often on this node alone shows another node each time, and the problem is counted", async () => {
    const policy = rebootOffline({ forMs: 30 * MINUTE_MS });
    const scenario = { nodes: 20, churn: { ...defaultScenario.churn, reuseIds: true } };
    const network = await startQuietNetwork({
      config: remediationConfig([policy]),
      scenario,
      settings: listsAndDetailsSettings,
    });
    const node = network.nodes()[0]!;
    network.failNode(node, "operator");
    // Between two walks, so that none misses the node.
    await network.advance(20.5 * MINUTE_MS);
    for (let replaced = 1; replaced <= 4; replaced++) {
      network.interventions.leaveFleet(node, network.daemon.clock.now() + 2 * SECOND_MS);
      await network.advance(2 * SECOND_MS);
      network.failNode(node, "operator");
      await network.advance(29 * MINUTE_MS);
      expect(network.postCount()).toBe(0);
    }
    expect(await problems(network)).toBe(2);
  });
});

test("a created_at identifies the nodes of another service, although that of the previous one changed with each response", async () => {
  let reads = 0;
  let isOtherService = false;
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: 30 * MINUTE_MS })]),
    scenario: { nodes: 20, churn: { ...defaultScenario.churn, reuseIds: true } },
    settings: listsAndDetailsSettings,
    wrapTransport: changingDetails(({ created_at: createdAt }) =>
      isOtherService ? createdAt : new Date(START_MS + reads++ * MINUTE_MS).toISOString(),
    ),
  });
  await network.advance(HOUR_MS);
  isOtherService = true;
  await network.restart({ serviceUrl: "https://other.example.net" });
  const node = network.nodes()[0]!;
  network.failNode(node, "operator");
  await network.advance(25.5 * MINUTE_MS);
  network.interventions.leaveFleet(node, network.daemon.clock.now() + 2 * SECOND_MS);
  await network.advance(2 * SECOND_MS);
  network.failNode(node, "operator");
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
});
