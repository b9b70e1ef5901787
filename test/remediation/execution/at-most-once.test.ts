import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import { courses, deeds } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { listsOnly, startWard, type WardRun } from "../../harness/quiet-network.ts";

/** Everything that happened to one action, on the disk and on the wire, in its order. */
function trail(ward: WardRun, { id, node }: Pick<Action, "id" | "node">): readonly string[] {
  const lines: string[] = [];
  for (const happening of ward.happenings) {
    if (happening.kind === "commit") {
      for (const change of happening.changes) {
        if (change.kind === "action" && change.row.id === id) {
          const { state, outcome } = change.row;
          lines.push(`${state}${outcome === null ? "" : `, ${outcome}`}`);
        }
      }
    } else if (happening.path.startsWith(`/v1/nodes/${node}`)) lines.push(`${happening.kind} ${happening.method}`);
  }
  return lines.slice(0, lines.findIndex((line) => line.startsWith("sent")) + 1);
}

test("every POST is preceded by its durable intent, a fresh read, and the durable note that it is being sent", async () => {
  const policy = rebootOffline({ steps: [steps.disconnect, steps.reboot, steps.quarantine] });
  const ward = await startWard({ rules: rulesOf([policy]) });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(40 * MINUTE_MS);
  expect(deeds(ward)).toHaveLength(3);
  for (const action of ward.actions()) {
    const own = trail(ward, action);
    const begin = own.indexOf("intended");
    expect(own.slice(begin)).toEqual([
      "intended",
      "request GET",
      "answer GET",
      "posting",
      "request POST",
      "answer POST",
      "sent",
    ]);
  }
  await ward.stop();
});

test("what is on the disk before a POST names all that is sent, and by when", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.quarantine] })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(8 * MINUTE_MS);
  const rows = ward.happenings.flatMap((happening) =>
    happening.kind === "commit"
      ? happening.changes.flatMap((change) =>
          change.kind === "action" && change.row.state === "posting" ? [change.row] : [],
        )
      : [],
  );
  expect(rows).toMatchObject([
    {
      node,
      request: {
        kind: "quarantine",
        durationMinutes: 120,
        reason: 'reboot-offline: node.status == "offline" (ep-1)',
      },
      sentAt: expect.any(Number),
      uptimeHoursBefore: expect.any(Number),
      evidence: { fields: { "node.status": "offline" } },
    },
  ]);
  await ward.stop();
});

test("under a policy that reads sessions a node is touched only right after a walk of them: no read of the node shows them", async () => {
  const SESSIONS_EVERY_MS = 10 * MINUTE_MS;
  const cadences = { ...listsOnly.cadences!, sessions: { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const };
  const policy = rebootOffline({ when: 'node.status == "offline" && sessions.total < 1000' });
  const ward = await startWard({ rules: rulesOf([policy]), settings: { cadences }, settleMs: 3 * SESSIONS_EVERY_MS });
  const walkEndedAt = () => ward.daemon.snapshots.last!.sessions!.settledAt;
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  ward.warden().orders.pause("drill");
  await ward.pass(3 * SESSIONS_EVERY_MS);
  const seen = walkEndedAt();
  await ward.passUntil(() => walkEndedAt() > seen);
  await ward.pass(SESSIONS_EVERY_MS / 2);
  ward.warden().orders.resume();
  await ward.passUntil(() => ward.postCount() > 0);
  expect(ward.daemon.clock.monotonic() - walkEndedAt()).toBeLessThan(30_000);
  await ward.stop();
});

test("while the journal refuses writes nobody is touched, the watching and the metrics go on, and it is said once", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.mishaps.refusal = "database or disk is full";
  ward.fell(node!);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["journal"]);
  expect(ward.warden().view.status().journal).toBe("database or disk is full");
  const said = ward.daemon.log.lines.filter(({ message }) => message.startsWith("the journal can't be written"));
  expect(said).toMatchObject([{ level: "error" }]);
  expect(await ward.daemon.metrics.render("text")).toContain("proxywarden_journal_writable 0\n");
  expect(ward.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  expect(ward.daemon.clock.monotonic() - ward.daemon.snapshots.last!.fleet.settledAt!).toBeLessThan(2 * MINUTE_MS);
  // It can be written again: what was held back is written down, and the node is healed.
  ward.mishaps.refusal = null;
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  expect(await ward.daemon.metrics.render("text")).toContain("proxywarden_journal_writable 1\n");
  await ward.stop();
});

test("a journal that begins to refuse between the intent and the sending keeps the POST from going out", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.actions().length > 0);
  ward.mishaps.refusal = "database or disk is full";
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  ward.strike(null);
  ward.mishaps.refusal = null;
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("what happened while the journal refused is not lost to the limits: an action whose outcome could not be written counts", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "forced_reboot");
  await ward.passUntil(() => ward.postCount() > 0);
  ward.mishaps.refusal = "database or disk is full";
  await ward.pass(2 * MINUTE_MS);
  expect(ward.warden().view.status().inFlight).toBe(1);
  // The crash loses what could not be written, but not that it was being sent.
  ward.kill();
  ward.mishaps.refusal = null;
  await ward.restart();
  await ward.pass(3 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("orders are refused while they can't be written down: they would be forgotten", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.mishaps.refusal = "database or disk is full";
  const { orders, view } = ward.warden();
  expect(orders.pause("a test")).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(view.status().paused).toBeNull();
  expect(orders.hold(ward.nodes()[0]!, "")).toMatchObject({ ok: false, error: { kind: "journal" } });
  ward.mishaps.refusal = null;
  expect(orders.pause("a test")).toMatchObject({ ok: true });
  await ward.pass(HOUR_MS / 6);
  await ward.stop();
});

test("a journal that does not outlive the process holds every action, for as long as the process lives", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]), lost: "the database is damaged" });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["journal"]);
  expect(ward.warden().view.status().journal).toBe("the database is damaged");
  await ward.stop();
});
