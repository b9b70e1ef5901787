import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import { runAtOnce } from "../../../../src/base/steps.ts";
import { createMemoryStateStore } from "../../../../src/journal/sqlite/store.ts";
import type { Transport } from "../../../../src/model/ports.ts";
import type { Action } from "../../../../src/model/remediation/episode.ts";
import { createVirtualClock } from "../../../../src/simulator/clock.ts";
import {
  listsOnlySettings,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../../harness/policies.ts";
import { actionLines, episodeStates } from "../../../harness/remediation-results.ts";

/** Returns everything that happened to one action, on disk and on the wire, in order. */
function eventsOf(network: QuietNetwork, { id, node }: Pick<Action, "id" | "node">): readonly string[] {
  const lines: string[] = [];
  for (const happening of network.events) {
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

test("every POST is preceded by its journaled intent, a read of the node, and the journaled state `posting`", async () => {
  const policy = rebootOffline({ steps: [steps.disconnect, steps.reboot, steps.quarantine] });
  const { network } = await startWithFailedNode({ config: remediationConfig([policy]), remedy: "operator" });
  await network.advance(40 * MINUTE_MS);
  expect(actionLines(network)).toHaveLength(3);
  for (const action of network.actions()) {
    const own = eventsOf(network, action);
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
});

test("the journal before a POST has the whole request and its time", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.quarantine] })]),
    remedy: "operator",
  });
  await network.advance(8 * MINUTE_MS);
  const rows = network.events.flatMap((happening) =>
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
});

test("a policy that reads sessions acts only right after a walk of the sessions", async () => {
  const SESSIONS_EVERY_MS = 10 * MINUTE_MS;
  const cadences = {
    ...listsOnlySettings.schedules!,
    sessions: { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const,
  };
  const policy = rebootOffline({ when: 'node.status == "offline" && sessions.total < 1000' });
  const network = await startQuietNetwork({
    config: remediationConfig([policy]),
    settings: { schedules: cadences },
    warmUpMs: 3 * SESSIONS_EVERY_MS,
  });
  const walkEndedAt = () => network.daemon.snapshots.last!.sessions!.settledAt;
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.commands().pause("drill");
  await network.advance(3 * SESSIONS_EVERY_MS);
  const seen = walkEndedAt();
  await network.advanceUntil(() => walkEndedAt() > seen);
  await network.advance(SESSIONS_EVERY_MS / 2);
  await network.commands().resume();
  await network.advance(2 * MINUTE_MS);
  // Until the next walk the node is held, and the decision says why.
  const detail = expect.stringMatching(
    /^the sessions were read \S+ ago; a policy that reads them acts only within 30s of their walk$/,
  );
  expect(network.decisions().at(-1)).toMatchObject({
    node,
    verdict: "hold",
    blockers: [{ reason: "verdict_unknown", detail }],
  });
  expect(runAtOnce(network.controller().view.heldNodes({}))).toMatchObject([{ node, reasons: ["verdict_unknown"] }]);
  await network.advanceUntil(() => network.postCount() > 0);
  expect(network.daemon.clock.monotonic() - walkEndedAt()).toBeLessThan(30_000);
  expect(network.decisions().at(-1)).toMatchObject({ node, verdict: "act" });
});

test("sessions whose walk began before an action do not end its step", async () => {
  const clock = createVirtualClock(START_MS);
  const pages: { readonly sentAt: number; readonly number: number }[] = [];
  const wrapTransport = (service: Transport): Transport => ({
    async request(request, signal) {
      if (request.path.startsWith("/v1/sessions?")) {
        pages.push({ sentAt: clock.monotonic(), number: Number(/page=(\d+)/.exec(request.path)![1]) });
        await clock.sleep(9 * SECOND_MS, signal);
      }
      return service.request(request, signal);
    },
    close: () => service.close(),
  });
  const settings = {
    schedules: { ...listsOnlySettings.schedules!, sessions: { kind: "every", intervalMs: 3 * MINUTE_MS } as const },
    pageLimit: 20,
  };
  const step = { ...steps.disconnect, verify: { withinMs: 10 * MINUTE_MS, expect: "sessions.total < 1000" } };
  const { network } = await startWithFailedNode({
    clock,
    wrapTransport,
    settings,
    scenario: { sessions: 60 },
    config: remediationConfig([rebootOffline({ steps: [step] })]),
    remedy: "operator",
  });
  await network.commands().pause("drill");
  await network.advance(20 * MINUTE_MS);
  // The action is sent while the pages of a walk are read.
  const walks = () => pages.filter(({ number }) => number <= 1).length;
  const before = walks();
  await network.advanceUntil(() => walks() > before);
  await network.commands().resume();
  await network.advanceUntil(() => network.postCount() > 0);
  expect(walks()).toBe(before + 1);
  const sentAt = clock.monotonic();
  await network.advanceUntil(() => network.actions().some(({ outcome }) => outcome !== null));
  expect(pages.some((page) => page.number <= 1 && page.sentAt >= sentAt)).toBe(true);
});

test("an action is withdrawn if the walk of the sessions is too long ago once it could be sent", async () => {
  const clock = createVirtualClock(START_MS);
  const store = createMemoryStateStore();
  let commitMs = 0;
  const journal: typeof store.journal = {
    ...store.journal,
    async commit(changes) {
      if (changes.some((change) => change.kind === "action" && change.row.state === "intended"))
        await clock.sleep(commitMs);
      await store.journal.commit(changes);
    },
  };
  const settings = {
    schedules: { ...listsOnlySettings.schedules!, sessions: { kind: "every", intervalMs: 5 * MINUTE_MS } as const },
  };
  const policy = rebootOffline({ when: 'node.status == "offline" && sessions.total < 1000' });
  const config = remediationConfig([policy]);
  const network = await startQuietNetwork({ clock, store: { ...store, journal }, settings, config });
  commitMs = 40 * SECOND_MS;
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({
    state: "withdrawn",
    detail: expect.stringMatching(/^verdict_unknown: the sessions were read \S+ ago/),
  });
  commitMs = 0;
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("while the journal can't be written no node is acted on, collectors and metrics continue, and it is logged once", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  network.injectedFailures.writeError = "database or disk is full";
  network.failNode(node!);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node!)).toEqual(["journal"]);
  expect(network.controller().view.status().journal).toBe("the journal can't be written: database or disk is full");
  const warnings = network.daemon.log.lines.filter(({ message }) => message.startsWith("the journal can't be written"));
  expect(warnings).toMatchObject([{ level: "error" }]);
  expect(await network.daemon.metrics.render("text")).toContain("proxywarden_journal_writable 0\n");
  expect(network.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  expect(network.daemon.clock.monotonic() - network.daemon.snapshots.last!.fleet.settledAt!).toBeLessThan(
    2 * MINUTE_MS,
  );
  // Once it can be written again, the pending rows are written, and the node is healed.
  network.injectedFailures.writeError = null;
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  expect(await network.daemon.metrics.render("text")).toContain("proxywarden_journal_writable 1\n");
});

test("a journal that fails between the intent and the POST prevents the POST", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.actions().length > 0);
  network.injectedFailures.writeError = "database or disk is full";
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  network.setFault(null);
  network.injectedFailures.writeError = null;
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("an action whose intent was journaled without a response is withdrawn, and another one is sent", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  let isLost = false;
  network.injectedFailures.crashAt = {
    when: "before",
    changes(changes) {
      if (isLost || !changes.some((change) => change.kind === "action" && change.row.state === "intended"))
        return false;
      isLost = true;
      void network.store.journal.commit(changes);
      throw new Error("the connection was lost");
    },
  };
  await network.advance(15 * MINUTE_MS);
  expect(network.actions()).toMatchObject([
    { state: "withdrawn", detail: "the journal could not be written", sentAt: null },
    { state: "ended", outcome: "verified" },
  ]);
  expect(network.postCount()).toBe(1);
});

test("an action whose outcome could not be journaled counts against the limits", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  const [node] = network.nodes("us-east");
  network.failNode(node!, "forced_reboot");
  const inFlight = () => network.controller().view.status().inFlight;
  await network.advanceUntil(() => network.postCount() > 0);
  // The response is still being received.
  expect([network.actions().at(-1)!.state, inFlight()]).toEqual(["posting", 1]);
  network.injectedFailures.writeError = "database or disk is full";
  await network.advance(2 * MINUTE_MS);
  expect(inFlight()).toBe(1);
  // The crash loses what could not be written, but not the state `posting`.
  network.kill();
  network.injectedFailures.writeError = null;
  await network.restart();
  await network.advance(3 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  expect(network.postCount()).toBe(1);
});

test("operator commands are rejected while they can't be journaled", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.injectedFailures.writeError = "database or disk is full";
  const { view } = network.controller();
  const commands = network.commands();
  expect(await commands.pause("a test")).toMatchObject({ ok: false, error: { kind: "journal" } });
  expect(view.status().paused).toBeNull();
  expect(await commands.hold(network.nodes()[0]!, "")).toMatchObject({ ok: false, error: { kind: "journal" } });
  network.injectedFailures.writeError = null;
  expect(await commands.pause("a test")).toMatchObject({ ok: true });
  await network.advance(HOUR_MS / 6);
});

test("a journal that is lost at exit holds every action", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    lostReason: "the database is damaged",
  });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["journal"]);
  expect(network.controller().view.status().journal).toBe("the database is damaged");
});
