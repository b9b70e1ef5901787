import { expect, test } from "vitest";
import { type Clinic, type Doctor, rebootOffline, runHere, startClinic, startDoctor } from "./healing-daemon.ts";
import type { Sections } from "../simulated-network.ts";
import { openMetricsSamples } from "../prometheus/parsers.ts";
import { runTool, tool } from "../process.ts";
import { until } from "../wait-until.ts";

const OUTAGE = { ailment: "outage", cure: "reboot" } as const;

/** A clinic with a doctor who is trusted, so that all that holds a node is what a test does. */
async function startTrusted(policy: object = rebootOffline(), safety: object = {}, sections: Sections = {}) {
  const clinic = await startClinic();
  const prescription = clinic.prescribe([policy], {
    ...sections,
    safety: { mode: "enforce", storm_cooldown: "0s", trust: { warmup_walks: 1 }, ...safety },
  });
  const doctor = await startDoctor(clinic, prescription);
  await until("it is trusted", async () => (await doctor.look()).sum("proxywarden_trusted") === 1);
  return { clinic, doctor, ...prescription };
}

/** Two nodes of different regions: one incident they are not. */
function strangers({ network, nodes }: Clinic): readonly [string, string] {
  const regions = new Map([...network.service.world.fleet.nodes].map(({ id, region }) => [id, region]));
  const [first] = nodes;
  return [first!, nodes.find((node) => regions.get(node) !== regions.get(first!))!];
}

const untilHeld = (doctor: Doctor, node: string, ...reasons: readonly string[]) =>
  until(`${node} is held for ${reasons.join(" and ")}`, async () => {
    const { policies } = await doctor.explain(node);
    const held = policies[0]?.timer?.state === "firing" && policies[0].episode !== null;
    return held && JSON.stringify((await doctor.reasons(node)).toSorted()) === JSON.stringify(reasons.toSorted());
  });

const untilHealed = (doctor: Doctor, node: string) =>
  until(
    () => `${node} is healed; ${JSON.stringify(doctor.log.lines)}`,
    async () => (await doctor.episode(node))?.state === "healed",
  );

test("a pause holds every node, a hold one; each ends by its order, over HTTP or by a command, and only with the token", async () => {
  const { clinic, doctor } = await startTrusted();
  const [first, second] = strangers(clinic);
  const { gate, people } = clinic;
  expect(await doctor.order("/api/v1/pause", {}, "guessed")).toMatchObject({ status: 401 });
  expect(await doctor.order("/api/v1/pause", { reason: "a deploy" })).toEqual({
    status: 200,
    json: { message: "paused: a deploy; no node is touched until resume" },
  });
  people.fallIll(first, OUTAGE);
  await untilHeld(doctor, first, "paused");
  expect((await doctor.look()).sum("proxywarden_paused")).toBe(1);
  expect(gate.posts).toEqual([]);
  expect(await doctor.command("resume")).toEqual({ code: 0, out: "resumed\n", err: "" });
  await untilHealed(doctor, first);
  expect((await doctor.look()).sum("proxywarden_paused")).toBe(0);
  expect(gate.posts.map(({ path }) => path)).toEqual([`/v1/nodes/${first}/reboot`]);

  expect(await doctor.command("hold", second, "--reason", "its disk is swapped")).toMatchObject({ code: 0 });
  people.fallIll(second, OUTAGE);
  await untilHeld(doctor, second, "held");
  expect((await doctor.explain(second)).policies[0]!.blockers).toEqual([
    { reason: "held", detail: "admin holds it: its disk is swapped", ends: "with release" },
  ]);
  expect(gate.posts).toHaveLength(1);
  expect(await doctor.order(`/api/v1/nodes/${second}/release`)).toMatchObject({ status: 200 });
  await untilHealed(doctor, second);
  expect(gate.posts.map(({ path }) => path).slice(1)).toEqual([`/v1/nodes/${second}/reboot`]);
});

test("mode approve: nothing is posted until a person approves the action, exactly that one then is, and a rejected one never", async () => {
  const { clinic, doctor } = await startTrusted(rebootOffline({ mode: "approve" }));
  const [first, second] = strangers(clinic);
  const { gate, people } = clinic;
  const waiting = (node: string) =>
    until(`an action of ${node} waits`, async () =>
      (await doctor.actions()).find((action) => action.node === node && action.state === "awaiting"),
    );
  people.fallIll(first, OUTAGE);
  const approved = await waiting(first);
  await untilHeld(doctor, first, "approval");
  const approvals = await doctor.command("approvals");
  expect(approvals.out).toMatch(new RegExp(`^${approved.id}  reboot ${first} .*\n.*\n.*\n +node\\.status = offline\n`));
  expect(gate.posts).toEqual([]);
  expect(await doctor.command("approve", approved.id)).toMatchObject({ code: 0 });
  await untilHealed(doctor, first);
  expect(gate.posts.map(({ path }) => path)).toEqual([`/v1/nodes/${first}/reboot`]);
  expect(await doctor.actions()).toMatchObject([{ id: approved.id, state: "ended", outcome: "verified" }]);
  expect(await doctor.command("approve", approved.id)).toMatchObject({
    code: 1,
    err: `proxywarden: ${approved.id} does not wait for approval: it is ended\n`,
  });

  people.fallIll(second, OUTAGE);
  const rejected = await waiting(second);
  expect(await doctor.order(`/api/v1/actions/${rejected.id}/reject`, { reason: "the carrier is on it" })).toMatchObject(
    {
      status: 200,
    },
  );
  await untilHeld(doctor, second, "rejected");
  people.fallIll(second, { ...OUTAGE, healAt: clinic.network.clock.now() });
  await until("its episode is over", async () => (await doctor.episode(second))?.state === "cleared");
  expect(gate.posts).toHaveLength(1);
  expect((await doctor.actions()).at(-1)).toMatchObject({ id: rejected.id, state: "rejected", outcome: null });
});

test("the breaker stays open until reset-breaker, and explain names every reason, live and out of the journal", async () => {
  const { clinic, doctor, file } = await startTrusted(rebootOffline(), { breaker: { percent: "0%", amount: 1 } });
  const [first, second] = strangers(clinic);
  clinic.people.fallIll(first, OUTAGE);
  await untilHealed(doctor, first);
  await doctor.order("/api/v1/pause", { reason: "a deploy" });
  await doctor.order(`/api/v1/nodes/${second}/hold`, { reason: "its disk is swapped" });
  clinic.people.fallIll(second, OUTAGE);
  await untilHeld(doctor, second, "paused", "held", "breaker");
  expect((await doctor.look()).sum("proxywarden_breaker_open")).toBe(1);
  const [live, kept] = await Promise.all([
    runHere("explain", second, "--url", doctor.app.url()).then(({ out }) => out),
    runHere("explain", second, "--config", file).then(({ out }) => out),
  ]);
  for (const story of [live, kept]) {
    expect(story).toMatch(/paused: since \S+ by admin: a deploy/);
    expect(story).toContain("held: admin holds it: its disk is swapped");
    expect(story).toMatch(/breaker: it opened at \S+ when 2 nodes fired; reset-breaker closes it/);
    expect(story).toContain("node.status = offline");
  }
  const { out } = await runHere("explain", first, "--config", file, "--output", "json");
  expect(JSON.parse(out)).toMatchObject({
    source: "journal",
    episodes: [{ state: "healed" }],
    actions: [{ outcome: "verified", proof: "uptime_fell" }],
    decisions: expect.arrayContaining([expect.objectContaining({ verdict: "act", blockers: [] })]),
  });

  await doctor.order("/api/v1/resume");
  await doctor.order(`/api/v1/nodes/${second}/release`);
  await untilHeld(doctor, second, "breaker");
  expect(clinic.gate.posts).toHaveLength(1);
  expect(await doctor.command("reset-breaker")).toMatchObject({ code: 0 });
  await untilHealed(doctor, second);
  expect(clinic.gate.posts).toHaveLength(2);
  expect(await doctor.command("reset-breaker")).toMatchObject({
    code: 1,
    err: "proxywarden: the breaker is not open, and no policy has fallen back to dry_run\n",
  });
});

test("half a fleet gone holds everybody until a person accepts it by accept-inventory", async () => {
  const { clinic, doctor } = await startTrusted();
  clinic.network.strike({ kind: "vanished", share: 0.4 });
  const trust = async () =>
    ((await (await doctor.ask("/api/v1/status")).json()) as { warden: { trusted: boolean; trust: readonly object[] } })
      .warden;
  await until("every node that vanished is known to be gone", async () => {
    const reasons = (await trust()).trust as readonly { reason: string }[];
    return reasons.length === 1 && reasons[0]!.reason === "inventory_shrunk";
  });
  expect(await trust()).toMatchObject({ trusted: false });
  const { data: left } = (await (await doctor.ask("/api/v1/nodes")).json()) as { data: readonly { id: string }[] };
  const node = left[0]!.id;
  clinic.people.fallIll(node, OUTAGE);
  expect((await doctor.look()).sum("proxywarden_trusted")).toBe(0);
  await until("it is held", async () => (await doctor.reasons(node)).includes("inventory_shrunk"));
  expect(clinic.gate.posts).toEqual([]);
  expect(await doctor.command("accept-inventory")).toEqual({
    code: 0,
    out: `the inventory is measured by the ${left.length} nodes of now\n`,
    err: "",
  });
  await untilHealed(doctor, node);
  expect(await trust()).toMatchObject({ trusted: true, trust: [] });
});

test("routes and metrics show what was decided and done, and promtool and the strict parser take the page", async () => {
  const { clinic, doctor } = await startTrusted();
  const [node] = clinic.nodes;
  clinic.people.fallIll(node!, OUTAGE);
  await untilHealed(doctor, node!);
  const policy = "reboot-offline";
  expect((await doctor.decisions()).filter(({ verdict }) => verdict === "act")).toMatchObject([
    { policy, node, mode: "enforce", blockers: [] },
  ]);
  expect(await doctor.actions()).toMatchObject([{ policy, node, outcome: "verified", request: { kind: "reboot" } }]);
  const policies = (await (await doctor.ask("/api/v1/policies")).json()) as object;
  expect(policies).toMatchObject({
    data: [{ name: policy, mode: "enforce", fallen: false, proven: true, pending: 0, firing: 0 }],
  });
  const page = await doctor.look();
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
    ...{ acts: 1, verified: 1, doubted: 0, timed: 1, open: 0, mode: 1, disrupted: 2 },
    ...{ trusted: 1, paused: 0, breaker: 0, writable: 1 },
  });
  expect(await runTool(tool("/usr/bin/promtool", "prometheus"), ["check", "metrics"], page.text)).toBe("");
  const open = await doctor.ask("/metrics", { headers: { accept: "application/openmetrics-text;version=1.0.0" } });
  const samples = await openMetricsSamples(await open.text());
  const labels = { policy, action: "reboot", outcome: "verified" };
  expect(samples).toContainEqual(["proxywarden_actions_total", labels, "1.0"]);
});
