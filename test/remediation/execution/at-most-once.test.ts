import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import { actionLines, episodeLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { listsOnlySettings, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

/** Everything that happened to one action, on the disk and on the wire, in its order. */
function trail(context: QuietNetwork, { id, node }: Pick<Action, "id" | "node">): readonly string[] {
  const lines: string[] = [];
  for (const happening of context.events) {
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
  const context = await startQuietNetwork({ rules: remediationRules([policy]) });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(40 * MINUTE_MS);
  expect(actionLines(context)).toHaveLength(3);
  for (const action of context.actions()) {
    const own = trail(context, action);
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
  await context.stop();
});

test("what is on the disk before a POST names all that is sent, and by when", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ steps: [steps.quarantine] })]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(8 * MINUTE_MS);
  const rows = context.events.flatMap((happening) =>
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
  await context.stop();
});

test("under a policy that reads sessions a node is acted on only right after a walk of them: no read of the node shows them", async () => {
  const SESSIONS_EVERY_MS = 10 * MINUTE_MS;
  const cadences = {
    ...listsOnlySettings.schedules!,
    sessions: { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const,
  };
  const policy = rebootOffline({ when: 'node.status == "offline" && sessions.total < 1000' });
  const context = await startQuietNetwork({
    rules: remediationRules([policy]),
    settings: { schedules: cadences },
    warmUpMs: 3 * SESSIONS_EVERY_MS,
  });
  const walkEndedAt = () => context.daemon.snapshots.last!.sessions!.settledAt;
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  context.controller().operatorCommands.pause("drill");
  await context.advance(3 * SESSIONS_EVERY_MS);
  const seen = walkEndedAt();
  await context.advanceUntil(() => walkEndedAt() > seen);
  await context.advance(SESSIONS_EVERY_MS / 2);
  context.controller().operatorCommands.resume();
  await context.advanceUntil(() => context.postCount() > 0);
  expect(context.daemon.clock.monotonic() - walkEndedAt()).toBeLessThan(30_000);
  await context.stop();
});

test("while the journal refuses writes no node is acted on, the watching and the metrics go on, and it is said once", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.injectedFailures.writeError = "database or disk is full";
  context.failedNodes(node!);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(node!)).toEqual(["journal"]);
  expect(context.controller().view.status().journal).toBe("database or disk is full");
  const warnings = context.daemon.log.lines.filter(({ message }) => message.startsWith("the journal can't be written"));
  expect(warnings).toMatchObject([{ level: "error" }]);
  expect(await context.daemon.metrics.render("text")).toContain("proxywarden_journal_writable 0\n");
  expect(context.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  expect(context.daemon.clock.monotonic() - context.daemon.snapshots.last!.fleet.settledAt!).toBeLessThan(
    2 * MINUTE_MS,
  );
  // It can be written again: what was held back is written down, and the node is healed.
  context.injectedFailures.writeError = null;
  await context.advance(30 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  expect(await context.daemon.metrics.render("text")).toContain("proxywarden_journal_writable 1\n");
  await context.stop();
});

test("a journal that begins to refuse between the intent and the sending keeps the POST from going out", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.actions().length > 0);
  context.injectedFailures.writeError = "database or disk is full";
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  context.setFault(null);
  context.injectedFailures.writeError = null;
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("what happened while the journal refused is not lost to the limits: an action whose outcome could not be written counts", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "forced_reboot");
  await context.advanceUntil(() => context.postCount() > 0);
  context.injectedFailures.writeError = "database or disk is full";
  await context.advance(2 * MINUTE_MS);
  expect(context.controller().view.status().inFlight).toBe(1);
  // The crash loses what could not be written, but not that it was being sent.
  context.kill();
  context.injectedFailures.writeError = null;
  await context.restart();
  await context.advance(3 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("orders are refused while they can't be written down: they would be forgotten", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.injectedFailures.writeError = "database or disk is full";
  const { operatorCommands: orders, view } = context.controller();
  expect(orders.pause("a test")).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(view.status().paused).toBeNull();
  expect(orders.hold(context.nodes()[0]!, "")).toMatchObject({ ok: false, error: { kind: "journal" } });
  context.injectedFailures.writeError = null;
  expect(orders.pause("a test")).toMatchObject({ ok: true });
  await context.advance(HOUR_MS / 6);
  await context.stop();
});

test("a journal that does not outlive the process holds every action, for as long as the process lives", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()]),
    lostReason: "the database is damaged",
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(node!)).toEqual(["journal"]);
  expect(context.controller().view.status().journal).toBe("the database is damaged");
  await context.stop();
});
