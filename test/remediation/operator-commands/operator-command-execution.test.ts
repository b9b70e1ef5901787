import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { defaultServiceOptions } from "../../../src/simulator/default-scenarios.ts";
import { journalRows } from "../../harness/daemon/journal-rows.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { notificationsOf } from "../../harness/remediation-results.ts";

const journaled = (network: QuietNetwork, node?: string) =>
  journalRows(network.store, "operator_commands")
    .filter((row) => node === undefined || row.node === node)
    .map(({ command, operator, node: about, action }) => [command, operator, about, action]);

test("every successful command is journaled with the operator's name, and survives a restart", async () => {
  const safety = { breaker: { share: 0, amount: 0, withinMs: HOUR_MS } };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], safety) });
  const [unhealthy, held] = network.nodes();
  network.interventions.startFailure(unhealthy!, { failureMode: "outage", remedy: "operator" });
  await network.advance(10 * MINUTE_MS);
  const alice = network.commands("alice");
  await alice.pause("a release");
  await network.commands("bob").resume();
  await alice.hold(held!, "its disk is swapped");
  const heldAt = network.daemon.clock.now();
  await network.advance(MINUTE_MS);
  await alice.release(held!);
  await alice.resetBreaker();
  await alice.acceptInventory();
  const { noteReload } = network.controller().operatorCommands;
  noteReload(["a.yaml:1:1: wrong", "a.yaml:2:1: wrong too"], "alice", "");
  noteReload([], null, "");
  // A command that changes nothing is not journaled, nor one that only another version of a standby has.
  const command = { command: "reboot" as "pause", target: "", reason: "", operator: null };
  const rejection = { kind: "conflict", message: "this version does not have the command reboot" };
  expect(await network.controller().operatorCommands.execute(command)).toEqual({ ok: false, error: rejection });
  expect((await alice.release(held!)).ok).toBe(false);
  const expected = [
    ["pause", "alice", null, null],
    ["resume", "bob", null, null],
    ["hold", "alice", held, null],
    ["release", "alice", held, null],
    ["reset-breaker", "alice", null, null],
    ["accept-inventory", "alice", null, null],
    ["reload", "alice", null, null],
    ["reload", null, null, null],
  ];
  expect(journaled(network)).toEqual(expected);
  const [last, refused] = await network.controller().view.operatorCommands({ limit: 2 });
  expect(last).toMatchObject({ detail: "the new configuration is active" });
  expect(refused).toMatchObject({ detail: "rejected: a.yaml:1:1: wrong (and 1 more)" });
  await network.restart();
  expect(journaled(network)).toEqual(expected);
  const { operatorCommands } = await network.controller().view.historyOf(held!);
  expect(operatorCommands.map(({ command }) => command)).toEqual(["release", "hold"]);
  const earlier = await network.controller().view.historyOf(held!, heldAt);
  expect(earlier.operatorCommands.map(({ command }) => command)).toEqual(["hold"]);
});

test("a total of the sessions that is too high stops policies that read sessions until an operator accepts it", async () => {
  const service = { ...defaultServiceOptions, sessionList: { ...defaultServiceOptions.sessionList, totalOffBy: 30 } };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: "sessions.total == 0", forMs: MINUTE_MS })]),
    scenario: { sessions: 300, service },
    settings: {},
  });
  const sessionsAreRead = () => network.daemon.snapshots.last!.sessions!.complete;
  await network.advance(20 * MINUTE_MS);
  expect(sessionsAreRead()).toBe(false);
  const { failure } = network.daemon.collectorManager.collectorHealth().sessions;
  expect(failure?.message).toContain("run accept-inventory");
  expect(await network.commands().acceptInventory()).toMatchObject({
    value: expect.stringContaining("; 30 missing sessions accepted"),
  });
  await network.advance(2 * MINUTE_MS);
  expect(sessionsAreRead()).toBe(true);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(sessionsAreRead()).toBe(true);
});

describe("lists that count more records than they show", () => {
  /** A network whose lists count `by` records too many. */
  async function startInexactNetwork(wrong: { by: number }) {
    const wrapTransport = (service: Transport): Transport => ({
      ...service,
      async request(request, signal) {
        const sent = await service.request(request, signal);
        if (!sent.ok || sent.value.status !== 200) return sent;
        const text = Buffer.from(sent.value.body).toString("utf8");
        const body = Buffer.from(text.replace(/"total":(\d+)/, (_, total) => `"total":${Number(total) + wrong.by}`));
        return { ok: true, value: { ...sent.value, body } };
      },
    });
    const config = remediationConfig([rebootOffline({ when: "sessions.total == 0", forMs: MINUTE_MS })]);
    return startQuietNetwork({ config, scenario: { sessions: 300 }, settings: { pageLimit: 100 }, wrapTransport });
  }
  const completeLists = ({ daemon }: QuietNetwork) => {
    const { fleet, sessions } = daemon.snapshots.last!;
    return { nodes: fleet.lastWalk!.complete, sessions: sessions!.complete };
  };

  test("are incomplete again after a restart if they were right for ten walks since they were accepted", async () => {
    const wrong = { by: 30 };
    const network = await startInexactNetwork(wrong);
    expect(completeLists(network)).toEqual({ nodes: false, sessions: false });
    expect(await network.commands().acceptInventory()).toMatchObject({ ok: true });
    await network.advance(3 * MINUTE_MS);
    expect(completeLists(network)).toEqual({ nodes: true, sessions: true });
    wrong.by = 0;
    await network.advance(15 * MINUTE_MS);
    await network.restart();
    wrong.by = 30;
    await network.advance(5 * MINUTE_MS);
    expect(completeLists(network)).toEqual({ nodes: false, sessions: false });
  });

  test("need not be accepted if the sessions that come and go explain the difference", async () => {
    const network = await startInexactNetwork({ by: 2 });
    const reply = await network.commands().acceptInventory();
    expect(reply).toMatchObject({ ok: true, value: expect.not.stringContaining("session") });
    expect(completeLists(network).sessions).toBe(true);
  });

  test("are not accepted with the sessions of a page that could not be read", async () => {
    const wrong = { by: 0 };
    const network = await startInexactNetwork(wrong);
    network.setFault({ kind: "status", status: 500 }, "GET /v1/sessions?page=2&");
    await network.advance(2 * MINUTE_MS);
    const reply = await network.commands().acceptInventory();
    expect(reply).toMatchObject({ ok: true, value: expect.not.stringContaining("session") });
    await network.advance(2 * MINUTE_MS);
    expect(completeLists(network)).toEqual({ nodes: true, sessions: false });
  });
});

test("an action has the operator who approved or rejected it, and the time", async () => {
  const config = remediationConfig([rebootOffline({ mode: "approve", steps: [steps.force] })], { mode: "approve" });
  const network = await startQuietNetwork({ config });
  const [node] = network.nodes();
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "reboot" });
  await network.advance(10 * MINUTE_MS);
  const [request] = network.controller().view.approvals();
  const at = network.daemon.clock.now();
  const { fleet } = network.daemon.snapshots.last!;
  const name = fleet.name[fleet.ids.indexOf(node!)];
  const summary = `${request!.id}: forced reboot of ${name} (${node}) by reboot-offline waits for approval`;
  expect(notificationsOf(network, "approval")).toMatchObject([{ summary }]);
  expect(await network.commands("alice").approve(request!.id)).toEqual({
    ok: true,
    value: `${request!.id} is approved: the forced reboot of ${name} is sent as soon as nothing else holds the node`,
  });
  await network.advance(10 * MINUTE_MS);
  const { actions } = await network.controller().view.historyOf(node!);
  expect(actions.find(({ id }) => id === request!.id)).toMatchObject({
    state: "ended",
    answered: { operator: "alice", at },
  });
  expect(journaled(network, node!)).toEqual([["approve", "alice", node, request!.id]]);
  await network.stop();

  const other = await startQuietNetwork({ config });
  other.interventions.startFailure(node!, { failureMode: "outage", remedy: "reboot" });
  await other.advance(10 * MINUTE_MS);
  const [refused] = other.controller().view.approvals();
  expect(await other.commands("bob").reject(refused!.id, "it is being moved")).toMatchObject({
    ok: true,
    value: expect.stringContaining(`${refused!.id}, forced reboot of ${name}, is rejected: it is being moved`),
  });
  expect((await other.controller().view.historyOf(node!)).actions[0]).toMatchObject({
    state: "rejected",
    answered: { operator: "bob" },
    detail: `bob rejected ${refused!.id}: it is being moved`,
  });
});

test("the blockers of a pause and of a hold name the operator", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes();
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "reboot" });
  await network.commands("alice").pause("a release");
  await network.commands("bob").hold(node!, "its disk is swapped");
  await network.advance(10 * MINUTE_MS);
  const { holds, policies } = network.explain(node!);
  expect(holds).toMatchObject([{ operator: "bob", reason: "bob holds it: its disk is swapped" }]);
  const details = policies.flatMap(({ blockers }) => blockers.map(({ reason, detail }) => `${reason}: ${detail}`));
  expect(details).toContainEqual(expect.stringMatching(/^paused: .* by alice: a release$/));
  expect(details).toContainEqual(expect.stringMatching(/^held: .*bob holds it: its disk is swapped/));
  expect(network.controller().view.status().paused).toMatchObject({ operator: "alice", reason: "a release" });
});
