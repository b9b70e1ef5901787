import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { runAtOnce } from "../../src/base/steps.ts";
import type { JournalQuery } from "../../src/model/remediation/journal.ts";
import { budgetView } from "../../src/web/api/status-views.ts";
import { startDaemonGroup, startTrustedGroup } from "../harness/daemon/daemon-group.ts";
import { commandsOf } from "../harness/operator-commands.ts";
import { marksOf } from "../harness/remediation-results.ts";

/** After this time the first leader's inventory is trusted. */
const WARM_UP_MS = 4 * MINUTE_MS;

test("a standby shows a pause of a leader that does not know the time yet", async () => {
  const group = await startDaemonGroup();
  const [one, two] = group.daemons;
  group.service.setFaults([{ fault: { kind: "hang" }, afterMs: 0, forMs: Number.POSITIVE_INFINITY }]);
  await group.advanceUntil(() => one!.roleSwitch.active.isLeading);
  await group.advance(5 * SECOND_MS);
  expect(await commandsOf(one!.roleSwitch.active, "alice").pause("deploy")).toMatchObject({ ok: true });
  await group.advance(5 * SECOND_MS);
  expect(two!.roleSwitch.active.view.status().paused).toMatchObject({ reason: "deploy", operator: "alice" });
});

test("a standby shows episodes, actions and decisions of the leader, and follows them", async () => {
  const group = await startTrustedGroup();
  const { roleSwitch, runtime } = group.daemons[1]!;
  const node = group.failNode();
  await group.advanceUntil(() => group.actions().some(({ state }) => state === "sent"));
  await group.advance(5 * SECOND_MS);
  const { view } = roleSwitch.active;
  expect(view.status()).toMatchObject({ inFlight: 1, largestWalkNodes: 60, limits: null, journal: null });
  expect(runAtOnce(view.policies())).toMatchObject([{ firing: 1, mode: "enforce" }]);
  const why = "this daemon stands by; only the leader, one (http://one), observes the fleet";
  expect(runAtOnce(view.explain(node))).toMatchObject({
    known: false,
    policies: [{ verdict: "unknown", timer: { state: "firing" }, episode: { state: "acting" }, unknowns: [{ why }] }],
  });
  expect(marksOf(view).get(node)).toBe("acting");
  expect(runtime.eventLog.after(0, 100).rows.map(({ event }) => event.kind)).toContain("action");
  group.daemons[1]!.database.isReachable = false;
  await group.advance(5 * SECOND_MS);
  expect(view.status().journal).toBe("the journal can't be read: the database can't be reached");
});

test("a standby that could not read the journal for long reads it as soon as it can", async () => {
  const group = await startDaemonGroup();
  await group.advance(MINUTE_MS);
  const standby = group.daemons.find(({ name }) => name !== group.leaders()[0])!;
  const problem = () => standby.roleSwitch.active.view.status().journal;
  const hanging = Promise.withResolvers<void>();
  standby.database.hanging = hanging.promise;
  await group.advance(20 * SECOND_MS);
  standby.database.isReachable = false;
  hanging.resolve();
  await group.advance(SECOND_MS);
  expect(problem()).toContain("can't be read");
  standby.database.isReachable = true;
  standby.database.hanging = null;
  await group.advance(5 * SECOND_MS);
  expect(problem()).toBeNull();
  expect(standby.log.lines.map(({ message }) => message).filter((message) => message.includes("journal"))).toEqual([
    "the journal can't be read; what this standby shows is out of date",
    "the journal can be read again",
  ]);
});

test("a read of the journal that ends after the daemon was elected adds no event a second time", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  const { journal } = two!.database.state;
  const { decisions } = journal;
  const hanging = Promise.withResolvers<void>();
  Object.assign(journal, {
    decisions: async (query: JournalQuery) => {
      await hanging.promise;
      return decisions(query);
    },
  });
  await group.advance(MINUTE_MS);
  await one!.stop();
  await group.advance(WARM_UP_MS);
  const node = group.failNode();
  await group.advanceUntil(() => group.posts.some(({ daemon, path }) => daemon === "two" && path.includes(node)));
  const shown = two!.runtime.eventLog.after(0, 1_000);
  hanging.resolve();
  await group.advance(SECOND_MS);
  expect(shown.rows).not.toEqual([]);
  expect(two!.runtime.eventLog.after(0, 1_000)).toEqual(shown);
});

test("the budget of a standby has no next poll", async () => {
  const group = await startDaemonGroup();
  await group.advance(MINUTE_MS);
  const nextPolls = group.daemons.map(({ roleSwitch }) => {
    const [startedAt, now] = [group.clock.now(), group.clock.now()];
    const fields = { version: "0.0.0", startedAt, now, monotonic: group.clock.monotonic(), configRejectedAt: null };
    return budgetView({ ...fields, ...roleSwitch.active.collected() }).categories.node_management.next_poll.in_seconds;
  });
  expect(nextPolls).toEqual([expect.any(Number), null]);
});
