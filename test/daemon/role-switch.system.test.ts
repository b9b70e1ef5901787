import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { runAtOnce } from "../../src/base/steps.ts";
import { LIMITER_KINDS } from "../../src/config/schema/scenario.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { type DaemonGroup, startDaemonGroup, startTrustedGroup } from "../harness/daemon/daemon-group.ts";
import { createPlanLimits, everyMinuteSettings } from "../harness/daemon/virtual-daemon.ts";
import { commandsOf } from "../harness/operator-commands.ts";
import { isLongRun } from "../harness/run-length.ts";

/** After this time the first leader's inventory is trusted. */
const WARM_UP_MS = 4 * MINUTE_MS;
/** Takeovers of a fleet that needs every call. */
const TAKEOVERS = isLongRun ? 8 : 2;
const LIMITERS_TESTED = isLongRun ? LIMITER_KINDS : (["fixed_window"] as const);

/** The steps that were sent, each with the number of its POSTs. */
function postsByStep({ posts }: DaemonGroup): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { path, body } of posts) counts[`${path} ${body}`] = (counts[`${path} ${body}`] ?? 0) + 1;
  return counts;
}

function expectLaws(group: DaemonGroup): void {
  expect(group.posts.filter(({ isByLeader }) => !isByLeader)).toEqual([]);
  expect(Object.entries(postsByStep(group)).filter(([, count]) => count > 1)).toEqual([]);
  expect(group.rejectedCalls()).toBe(0);
}

test("one daemon leads and heals, and the others stand by without calls", async () => {
  const group = await startTrustedGroup({ daemons: 3 });
  expect(group.leaders()).toEqual(["one"]);
  const node = group.failNode();
  await group.advance(10 * MINUTE_MS);
  expect(group.posts.map(({ daemon, path }) => [daemon, path])).toEqual([["one", `/v1/nodes/${node}/reboot`]]);
  const [one, two] = [await group.daemons[0]!.scrape(), await group.daemons[1]!.scrape()];
  expect(one).toContain("proxynet_nodes{");
  expect(two).not.toMatch(/^proxynet_/m);
  expect(two).not.toContain('proxywarden_api_requests_total{endpoint="nodes",code="200"}');
  expectLaws(group);
});

test("a daemon that stops hands over immediately, and the next one continues from its journal", async () => {
  const group = await startTrustedGroup();
  const node = group.failNode();
  await group.advanceUntil(() => group.actions().some(({ state }) => state === "sent"));
  const before = group.clock.now();
  const stopping = group.daemons[0]!.stop();
  await stopping;
  expect(group.leaders()).toEqual(["two"]);
  expect(group.clock.now() - before).toBeLessThan(25 * SECOND_MS);
  await group.advance(10 * MINUTE_MS);
  expect(group.actions()).toMatchObject([{ node, state: "ended", outcome: "verified" }]);
  expectLaws(group);
});

test("a daemon that is paused for longer than the lease takes no step afterwards, and stands by", async () => {
  const group = await startTrustedGroup();
  group.failNode();
  await group.advanceUntil(() => group.actions().some(({ state }) => state === "posting" || state === "sent"));
  group.daemons[0]!.pause();
  await group.advance(30 * SECOND_MS);
  expect(group.leaders()).toEqual(["two"]);
  group.failNode();
  group.daemons[0]!.resume();
  await group.advance(10 * SECOND_MS);
  expect(group.daemons[0]!.roleSwitch.active.isLeading).toBe(false);
  const page = await group.daemons[0]!.scrape();
  expect(page).not.toMatch(/^proxynet_|^proxywarden_trusted/m);
  await group.advance(20 * MINUTE_MS);
  expect(group.posts.some(({ daemon }) => daemon === "two")).toBe(true);
  expectLaws(group);
});

test.each([
  // Nothing was sent for certain, so the new leader begins again.
  { lost: "intended", sentBy: ["two"], actions: [{ state: "withdrawn" }, { outcome: "verified", inDoubt: false }] },
  // The new leader can't know that it was not sent: it counts as sent, and the next step follows.
  { lost: "posting", sentBy: ["two"], actions: [{ inDoubt: true, outcome: "ineffective" }, { outcome: "verified" }] },
])(
  "a leader that loses the database as it journals a step as $lost does not send it",
  async ({ lost, sentBy, actions }) => {
    const group = await startTrustedGroup();
    const [one] = group.daemons;
    one!.database.onCommitted = async (changes) => {
      if (!changes.some((change) => change.kind === "action" && change.row.state === lost)) return;
      // The commit is written, and the reply is late.
      one!.database.isReachable = false;
      await group.clock.sleep(20 * SECOND_MS);
    };
    group.failNode();
    await group.advance(24 * MINUTE_MS);
    expect(group.posts.map(({ daemon }) => daemon)).toEqual(sentBy);
    expect(group.actions()).toMatchObject(actions);
    expectLaws(group);
  },
);

test("commands given to a standby are executed by the leader, which answers; without a leader they wait for the next one", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  const give = async <T>(command: Promise<T>): Promise<T> => {
    await group.advance(6 * SECOND_MS);
    return command;
  };
  const commands = commandsOf(two!.roleSwitch.active, "alice");
  expect(await give(commands.pause("deploy"))).toEqual({
    ok: true,
    value: "paused: deploy; no action is taken until resume; executed by the leader, one (http://one)",
  });
  expect(one!.roleSwitch.active.view.status().paused).toMatchObject({ reason: "deploy", operator: "alice" });
  expect(two!.roleSwitch.active.view.status().paused).toMatchObject({ reason: "deploy", operator: "alice" });
  expect(await give(commands.approve("act-7"))).toMatchObject({ ok: false, error: { kind: "not_found" } });
  one!.pause();
  expect(await give(commands.resume())).toMatchObject({ ok: false, error: { kind: "unanswered" } });
  await group.advance(20 * SECOND_MS);
  expect(group.leaders()).toEqual(["two"]);
  expect(two!.roleSwitch.active.view.status().paused).toBeNull();
  one!.resume();
  await group.advance(20 * SECOND_MS);
  two!.database.isReachable = false;
  expect(await give(commandsOf(one!.roleSwitch.active).pause("x"))).toMatchObject({ error: { kind: "unanswered" } });
  one!.database.isReachable = false;
  expect(await give(commandsOf(one!.roleSwitch.active).pause("x"))).toMatchObject({ error: { kind: "journal" } });
});

test("a command is not said to have changed nothing if the database took it and the response was lost", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  const { forwardedCommands } = two!.database.state;
  const submit: typeof forwardedCommands.submit = async (command) => {
    await forwardedCommands.submit(command);
    throw new Error("the connection was lost");
  };
  Object.assign(two!.database.state, { forwardedCommands: { ...forwardedCommands, submit } });
  const done = await commandsOf(two!.roleSwitch.active).pause("deploy");
  await group.advance(SECOND_MS);
  expect(one!.roleSwitch.active.view.status().paused).toMatchObject({ reason: "deploy" });
  expect(done).toMatchObject({
    error: { kind: "journal", message: expect.stringMatching(/may still be executed: check/) },
  });
});

test("a command that was journaled although the response was lost changes nothing, as its reply says", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  const node = group.failNode();
  expect(await commandsOf(one!.roleSwitch.active, "alice").hold(node, "repair")).toMatchObject({ ok: true });
  one!.database.onCommitted = (changes) => {
    if (changes.some(({ kind }) => kind === "command")) throw new Error("the connection was lost");
  };
  const commands = commandsOf(one!.roleSwitch.active, "bob");
  for (const done of [await commands.pause("deploy"), await commands.release(node)])
    expect(done).toMatchObject({ error: { message: expect.stringMatching(/nothing has changed$/) } });
  await group.advance(2 * MINUTE_MS);
  await one!.stop();
  await group.advance(20 * SECOND_MS);
  expect(group.leaders()).toEqual(["two"]);
  expect(two!.roleSwitch.active.view.status().paused).toBeNull();
  expect(runAtOnce(two!.roleSwitch.active.view.explain(node)).holds).toMatchObject([
    { kind: "held", operator: "alice" },
  ]);
});

test("a leader that can't renew stops polling before its lease ends, and continues if no other daemon took over", async () => {
  const group = await startTrustedGroup({ daemons: 1 });
  const [one] = group.daemons;
  one!.database.isReachable = false;
  await group.advance(16 * SECOND_MS);
  expect(group.leaders()).toEqual([]);
  const calls = group.service.serial;
  const node = group.failNode();
  await group.advance(10 * MINUTE_MS);
  expect(group.service.serial).toBe(calls);
  const { view } = one!.roleSwitch.active;
  const ended = /^the lease of this daemon has ended; .*database answers.*: the database can't be reached\)$/;
  expect(view.status().journal).toMatch(ended);
  expect(runAtOnce(view.explain(node)).policies[0]!.blockers).toContainEqual({
    reason: "journal",
    detail: expect.stringMatching(ended),
  });
  one!.database.isReachable = true;
  await group.advance(5 * SECOND_MS);
  expect([group.leaders(), group.database.epoch()]).toEqual([["one"], 1]);
  await group.advance(20 * MINUTE_MS);
  expect(group.actions()).toMatchObject([{ node, outcome: "verified" }]);
  expectLaws(group);
});

test("a leader that is cut off from the database is deposed, and leads again when the other one stops", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  one!.database.isReachable = false;
  await group.advance(MINUTE_MS);
  expect(group.leaders()).toEqual(["two"]);
  one!.database.isReachable = true;
  await group.advance(10 * SECOND_MS);
  expect(one!.roleSwitch.active.isLeading).toBe(false);
  await two!.stop();
  expect([group.leaders(), group.database.epoch()]).toEqual([["one"], 3]);
  const node = group.failNode();
  await group.advance(15 * MINUTE_MS);
  expect(group.actions()).toMatchObject([{ node, outcome: "verified" }]);
  expectLaws(group);
});

test("a reload takes effect in both roles", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  await one!.reload({ settings: { pageLimit: 500 } });
  await two!.reload({ settings: { pageLimit: 500 } });
  expect(group.leaders()).toEqual(["one"]);
  expect([one, two].map((member) => member!.roleSwitch.active.resources.settings.pageLimit)).toEqual([500, 500]);
  one!.database.isReachable = false;
  await group.advance(MINUTE_MS);
  one!.database.isReachable = true;
  await one!.reload({ settings: { pageLimit: 200 } });
  await group.advance(10 * SECOND_MS);
  expect(one!.roleSwitch.active.isLeading).toBe(false);
  expect(one!.roleSwitch.active.resources.settings.pageLimit).toBe(200);
  await group.advance(WARM_UP_MS);
  expect(group.leaders()).toEqual(["two"]);
  expectLaws(group);
});

test("a reload that changes neither the limits nor the service causes no 429 while Retry-After applies", async () => {
  const group = await startTrustedGroup({ daemons: 1 });
  const fault = { kind: "status", status: 429, retryAfter: "3600" } as const;
  group.service.setFaults([{ fault, afterMs: 0, forMs: Number.POSITIVE_INFINITY }]);
  await group.advance(15 * MINUTE_MS);
  const callsBefore = group.service.serial;
  const [one] = group.daemons;
  await one!.reload({ settings: { pageLimit: 500 } });
  await group.advance(5 * MINUTE_MS);
  expect(group.service.serial).toBe(callsBefore);
  await one!.reload({ settings: { limits: createPlanLimits("enterprise") } });
  await group.advance(5 * MINUTE_MS);
  expect(group.service.serial).toBeGreaterThan(callsBefore);
});

test.each(LIMITERS_TESTED)(
  "a fleet that needs every call gets no 429 while leaders change every few minutes (%s)",
  async (limiter) => {
    // 20 pages and 67 details a minute, of which the limit less the reserve allows 80. The month would allow only 23.
    const limits = createPlanLimits("enterprise");
    const group = await startDaemonGroup({
      scenario: { nodes: 1_000, service: { ...defaultScenario.service, limiter } },
      settings: { schedules: everyMinuteSettings.schedules, limits, pageLimit: 50 },
    });
    for (let takeover = 0; takeover < TAKEOVERS; takeover++) {
      const leader = group.daemons.find(({ roleSwitch }) => roleSwitch.isLeading()) ?? group.daemons[0]!;
      const callsBefore = group.service.serial;
      await group.advance(3 * MINUTE_MS);
      expect(group.service.serial - callsBefore).toBeGreaterThan(3 * 60);
      await group.advance((takeover / 7) * MINUTE_MS);
      leader.database.isReachable = false;
      await group.advance(30 * SECOND_MS);
      expect(group.leaders()).not.toContain(leader.name);
      leader.database.isReachable = true;
      await group.advance(10 * SECOND_MS);
    }
    expect(group.database.epoch()).toBeGreaterThanOrEqual(TAKEOVERS);
    expect(group.rejectedCalls()).toBe(0);
  },
);
