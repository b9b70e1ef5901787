import { expect, test } from "vitest";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { runInProcess } from "../../cli/terminal.ts";
import { requireProgram, runProgram } from "../process.ts";
import { openMetricsSamples } from "../prometheus/parsers.ts";
import type { ConfigSections } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";
import {
  type HealingSetup,
  type RunningDaemon,
  rebootOffline,
  startDaemonFor,
  startHealingSetup,
} from "./healing-daemon.ts";

const OUTAGE = { failureMode: "outage", remedy: "reboot" } as const;

/** Starts a daemon whose inventory is trusted, so that only the test holds nodes. */
async function startTrustedDaemon(
  policy: object = rebootOffline(),
  safety: object = {},
  sections: ConfigSections = {},
) {
  const setup = await startHealingSetup();
  const config = setup.writeConfig([policy], {
    ...sections,
    safety: { mode: "enforce", storm_cooldown: "0s", trust: { warmup_walks: 1 }, ...safety },
  });
  const daemon = await startDaemonFor(setup, config);
  await waitUntil("it is trusted", async () => (await daemon.scrape()).sum("proxywarden_trusted") === 1);
  return { setup, daemon, ...config };
}

/** Returns two nodes of different regions, which are not one incident. */
function nodesOfDifferentRegions({ network, nodes }: HealingSetup): readonly [string, string] {
  const regions = new Map([...network.service.network.fleet.nodes].map(({ id, region }) => [id, region]));
  const [first] = nodes;
  return [first!, nodes.find((node) => regions.get(node) !== regions.get(first!))!];
}

const untilHeld = (daemon: RunningDaemon, node: string, ...reasons: readonly string[]) =>
  waitUntil(`${node} is held for ${reasons.join(" and ")}`, async () => {
    const { policies } = await daemon.explain(node);
    const held = policies[0]?.timer?.state === "firing" && policies[0].episode !== null;
    return held && JSON.stringify((await daemon.reasons(node)).toSorted()) === JSON.stringify(reasons.toSorted());
  });

const untilHealed = (daemon: RunningDaemon, node: string) =>
  waitUntil(
    () => `${node} is healed; ${JSON.stringify(daemon.log.lines)}`,
    async () => (await daemon.episode(node))?.state === "healed",
  );

test("a pause holds every node, a hold one node; both end with a command over HTTP or the CLI, and only with the token", async () => {
  const { setup, daemon } = await startTrustedDaemon();
  const [first, second] = nodesOfDifferentRegions(setup);
  const { serviceProxy, interventions } = setup;
  expect(await daemon.sendCommand("/api/v1/pause", {}, "guessed")).toMatchObject({ status: 401 });
  expect(await daemon.sendCommand("/api/v1/pause", { reason: "a deploy" })).toEqual({
    status: 200,
    json: { message: "paused: a deploy; no action is taken until resume" },
  });
  interventions.startFailure(first, OUTAGE);
  await untilHeld(daemon, first, "paused");
  expect((await daemon.scrape()).sum("proxywarden_paused")).toBe(1);
  expect(serviceProxy.postRequests).toEqual([]);
  expect(await daemon.runCli("resume")).toEqual({ code: 0, out: "resumed\n", err: "" });
  await untilHealed(daemon, first);
  expect((await daemon.scrape()).sum("proxywarden_paused")).toBe(0);
  expect(serviceProxy.postRequests.map(({ path }) => path)).toEqual([`/v1/nodes/${first}/reboot`]);

  const held = await daemon.runCli("hold", second, "--for", "1d", "--reason", "its disk is swapped");
  expect(held.out).toMatch(
    /^[a-z]+-\d+ is held: its disk is swapped; no policy acts on it until 20\S+ \S+ UTC or release\n$/,
  );
  interventions.startFailure(second, OUTAGE);
  await untilHeld(daemon, second, "held");
  expect((await daemon.explain(second)).policies[0]!.blockers).toEqual([
    {
      reason: "held",
      detail: expect.stringMatching(/^admin holds it: its disk is swapped; for another 23h/),
      ends: "with release, or after the duration given with --for",
    },
  ]);
  expect(serviceProxy.postRequests).toHaveLength(1);
  expect(await daemon.sendCommand(`/api/v1/nodes/${second}/release`)).toMatchObject({ status: 200 });
  await untilHealed(daemon, second);
  expect(serviceProxy.postRequests.map(({ path }) => path).slice(1)).toEqual([`/v1/nodes/${second}/reboot`]);
});

test("in mode approve exactly the actions that an operator approves are posted", async () => {
  const { setup, daemon } = await startTrustedDaemon(rebootOffline({ mode: "approve" }));
  const [first, second] = nodesOfDifferentRegions(setup);
  const { serviceProxy, interventions } = setup;
  const waiting = (node: string) =>
    waitUntil(`an action of ${node} waits`, async () =>
      (await daemon.actions()).find((action) => action.node === node && action.state === "awaiting"),
    );
  interventions.startFailure(first, OUTAGE);
  const approved = await waiting(first);
  await untilHeld(daemon, first, "approval");
  const approvals = await daemon.runCli("approvals");
  expect(approvals.out).toMatch(
    new RegExp(`^${approved.id}  reboot \\S+ \\(${first}, .*\n.*\n.*\n +node\\.status = offline\n`),
  );
  expect(serviceProxy.postRequests).toEqual([]);
  expect(await daemon.runCli("approve", approved.id)).toMatchObject({ code: 0 });
  await untilHealed(daemon, first);
  expect(serviceProxy.postRequests.map(({ path }) => path)).toEqual([`/v1/nodes/${first}/reboot`]);
  expect(await daemon.actions()).toMatchObject([{ id: approved.id, state: "ended", outcome: "verified" }]);
  expect(await daemon.runCli("approve", approved.id)).toMatchObject({
    code: 1,
    err: `proxywarden: ${approved.id} does not wait for approval: its state is ended\n`,
  });

  interventions.startFailure(second, OUTAGE);
  const rejected = await waiting(second);
  expect(
    await daemon.sendCommand(`/api/v1/actions/${rejected.id}/reject`, { reason: "the carrier is on it" }),
  ).toMatchObject({
    status: 200,
  });
  await untilHeld(daemon, second, "rejected");
  interventions.startFailure(second, { ...OUTAGE, recoverAt: setup.network.clock.now() });
  await waitUntil("its episode is over", async () => (await daemon.episode(second))?.state === "cleared");
  expect(serviceProxy.postRequests).toHaveLength(1);
  expect((await daemon.actions()).at(-1)).toMatchObject({ id: rejected.id, state: "rejected", outcome: null });
});

test("the circuit breaker stays open until reset-breaker, and explain names every reason, from the daemon and from the journal", async () => {
  const { setup, daemon, file } = await startTrustedDaemon(rebootOffline(), { breaker: { percent: "0%", amount: 1 } });
  const [first, second] = nodesOfDifferentRegions(setup);
  setup.interventions.startFailure(first, OUTAGE);
  await untilHealed(daemon, first);
  await daemon.sendCommand("/api/v1/pause", { reason: "a deploy" });
  await daemon.sendCommand(`/api/v1/nodes/${second}/hold`, { reason: "its disk is swapped" });
  setup.interventions.startFailure(second, OUTAGE);
  await untilHeld(daemon, second, "paused", "held", "breaker");
  expect((await daemon.scrape()).sum("proxywarden_breaker_open")).toBe(1);
  const [live, kept] = await Promise.all([
    runInProcess("explain", second, "--url", daemon.app.url()).then(({ out }) => out),
    runInProcess("explain", second, "--config", file).then(({ out }) => out),
  ]);
  for (const explanation of [live, kept]) {
    expect(explanation).toMatch(/paused: since \S+ \S+ UTC by admin: a deploy/);
    expect(explanation).toContain("held: admin holds it: its disk is swapped");
    expect(explanation).toMatch(
      /breaker: it opened at \S+ \S+ UTC after 2 nodes had fired or been lost \(2 under reboot-offline\); reset-breaker closes it/,
    );
    expect(explanation).toContain("node.status = offline");
  }
  const { out } = await runInProcess("explain", first, "--config", file, "--output", "json");
  expect(JSON.parse(out)).toMatchObject({
    source: "journal",
    episodes: [{ state: "healed" }],
    actions: [{ outcome: "verified", proof: "uptime_fell" }],
    decisions: expect.arrayContaining([expect.objectContaining({ verdict: "act", blockers: [] })]),
  });

  await daemon.sendCommand("/api/v1/resume");
  await daemon.sendCommand(`/api/v1/nodes/${second}/release`);
  await untilHeld(daemon, second, "breaker");
  expect(setup.serviceProxy.postRequests).toHaveLength(1);
  expect(await daemon.runCli("reset-breaker")).toMatchObject({ code: 0 });
  await untilHealed(daemon, second);
  expect(setup.serviceProxy.postRequests).toHaveLength(2);
  expect(await daemon.runCli("reset-breaker")).toMatchObject({
    code: 1,
    err: "proxywarden: the breaker is not open, and no policy has fallen back to dry_run\n",
  });
});

test("while the list leaves out much of the fleet every node is held until accept-inventory", async () => {
  const { setup, daemon } = await startTrustedDaemon();
  const { network, nodes } = setup;
  network.setFault({ kind: "vanished", missing: 0.4 });
  const remediationStatus = async () =>
    (
      (await (await daemon.ask("/api/v1/status")).json()) as {
        remediation: { trusted: boolean; trust: { reason: string }[] };
      }
    ).remediation;
  await waitUntil("the list shows too few nodes", async () =>
    (await remediationStatus()).trust.some(({ reason }) => reason === "inventory_shrunk"),
  );
  expect(await remediationStatus()).toMatchObject({ trusted: false });
  // Gauges are set at the end of a round, a moment later.
  await waitUntil("the gauge says so", async () => (await daemon.scrape()).sum("proxywarden_trusted") === 0);
  const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
  const { data: listed } = (await (await fetch(`${network.url}/v1/nodes?limit=100`, { headers })).json()) as {
    data: readonly { id: string }[];
  };
  const [node] = nodes.filter((id) => listed.some((record) => record.id === id));
  setup.interventions.startFailure(node!, OUTAGE);
  await waitUntil("it is held", async () => (await daemon.reasons(node!)).includes("inventory_shrunk"));
  expect(setup.serviceProxy.postRequests).toEqual([]);
  expect(await daemon.runCli("accept-inventory")).toMatchObject({
    code: 0,
    out: expect.stringContaining(`the inventory baseline is now ${listed.length} nodes`),
  });
  await untilHealed(daemon, node!);
  await waitUntil("the others are known to be gone", async () => {
    const { data } = (await (await daemon.ask("/api/v1/nodes?limit=100")).json()) as { data: readonly object[] };
    return data.length === listed.length;
  });
  expect(await remediationStatus()).toMatchObject({ trusted: true, trust: [] });
});

test("routes and metrics show decisions and actions, and promtool and the strict parser accept /metrics", async () => {
  const { setup, daemon } = await startTrustedDaemon();
  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, OUTAGE);
  await untilHealed(daemon, node!);
  const policy = "reboot-offline";
  // On a slow machine the first step may be withdrawn, because the node was read too long ago, and decided on again.
  expect((await daemon.decisions()).findLast(({ verdict }) => verdict === "act")).toMatchObject({
    policy,
    node,
    mode: "enforce",
    blockers: [],
  });
  expect(await daemon.actions()).toMatchObject([{ policy, node, outcome: "verified", request: { kind: "reboot" } }]);
  const policies = (await (await daemon.ask("/api/v1/policies")).json()) as object;
  expect(policies).toMatchObject({
    data: [{ name: policy, mode: "enforce", fell_back: false, proven: true, pending: 0, firing: 0 }],
  });
  const page = await daemon.scrape();
  const shown = (name: string, labels: Readonly<Record<string, string>> = {}) => page.sum(name, labels);
  expect({
    acts: shown("proxywarden_decisions_total", { policy, verdict: "act", reason: "all_clear" }),
    verified: shown("proxywarden_actions_total", { policy, action: "reboot", outcome: "verified" }),
    doubted: shown("proxywarden_actions_total", { policy, action: "reboot", outcome: "in_doubt" }),
    timed: shown("proxywarden_action_duration_seconds_count", { action: "reboot" }),
    open: shown("proxywarden_episodes", { policy }),
    mode: shown("proxywarden_policy_mode", { policy, mode: "enforce" }),
    disrupted: shown("proxywarden_limit_nodes", { limit: "max_disrupted" }),
    trusted: shown("proxywarden_trusted"),
    paused: shown("proxywarden_paused"),
    breaker: shown("proxywarden_breaker_open"),
    writable: shown("proxywarden_journal_writable"),
  }).toEqual({
    acts: 1,
    verified: 1,
    doubted: 0,
    timed: 1,
    open: 0,
    mode: 1,
    disrupted: 2,
    trusted: 1,
    paused: 0,
    breaker: 0,
    writable: 1,
  });
  expect(await runProgram(requireProgram("/usr/bin/promtool", "prometheus"), ["check", "metrics"], page.text)).toBe("");
  const open = await daemon.ask("/metrics", { headers: { accept: "application/openmetrics-text;version=1.0.0" } });
  const samples = await openMetricsSamples(await open.text());
  const labels = { policy, action: "reboot", outcome: "verified" };
  expect(samples).toContainEqual(["proxywarden_actions_total", labels, "1.0"]);
});
