import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Action,
  CLOSED_STATES,
  type Episode,
  isUnfinished,
  type NodeHold,
  OPEN_STATES,
  type TimerRow,
} from "../../src/model/remediation/episode.ts";
import { formatId, type JournalChange } from "../../src/model/remediation/journal.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";
import { toTimerRow } from "../../src/policy/timer.ts";
import { propertyRuns } from "../harness/run-length.ts";
import { actionOf, episodeOf, holdOf, timerOf } from "../journal/arbitrary-changes.ts";
import { createInMemoryJournal, numberOf } from "../journal/in-memory-journal.ts";
import { firingTimer } from "./guard-case.ts";

const PROPERTY_RUNS = propertyRuns(1_000);
const NODES = ["node_1", "node_2", "node_3"];
const POLICIES = ["one", "two"];
const DRY_RUN_OR_REAL = [true, false];

/** One random change; {@link runMoves} skips a change that is not possible in the current state. */
const move = fc.record({
  kind: fc.constantFrom(
    ...["begin", "begin", "close", "move", "act", "act", "end", "hold", "release", "fact", "timer"],
  ),
  node: fc.constantFrom(...NODES),
  policy: fc.constantFrom(...POLICIES),
  dryRun: fc.boolean(),
  pick: fc.nat(),
});
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;
const moves = fc.array(move, { maxLength: 60, size: "max" });

/** Writes a random sequence of changes to a journal, and applies each to the records. */
function runMoves(all: readonly Move[]) {
  const journal = createInMemoryJournal();
  const records = new RemediationRecords(journal.load(0));
  const ids: string[] = [];
  let now = 0;
  const write = (...changes: JournalChange[]) => {
    journal.commit(changes);
    records.apply(changes);
  };
  const from = <T>(list: readonly T[], pick: number): T => list[pick % list.length]!;

  function number(kind: "ep" | "act"): number {
    const id = records.nextId(kind);
    ids.push(id);
    return numberOf(id);
  }

  function step({ kind, node, policy, dryRun, pick }: Move): void {
    const open = records.openEpisode(node, dryRun);
    switch (kind) {
      case "begin":
        if (open !== null) return;
        write({ kind: "episode", row: episodeOf(number("ep"), { node, policy, dryRun, openedAt: now }) });
        return;
      case "move":
        if (open === null) return;
        write({ kind: "episode", row: { ...open, state: from(OPEN_STATES, pick), acted: open.acted + 1 } });
        return;
      case "close":
        if (open === null) return;
        write({ kind: "episode", row: { ...open, state: from(CLOSED_STATES, pick), closedAt: now } });
        return;
      case "act":
        if (open === null) return;
        write({
          kind: "action",
          row: actionOf(number("act"), open.id, {
            node,
            dryRun,
            createdAt: now,
            state: "intended",
            outcome: null,
          }),
        });
        return;
      case "end": {
        const unfinished = [...records.actions()].filter(isUnfinished);
        if (unfinished.length === 0) return;
        const state = from(["posting", "sent", "ended", "withdrawn"] as const, pick);
        write({ kind: "action", row: { ...from(unfinished, pick), state, endedAt: now } });
        return;
      }
      case "hold":
        write({ kind: "hold", row: holdOf(node, { policy: pick % 2 === 0 ? null : policy, at: now }) });
        return;
      case "release":
        write({ kind: "hold_gone", node, policy: pick % 2 === 0 ? null : policy });
        return;
      case "fact":
        write({ kind: "fact", key: `remediation.${policy}`, value: pick % 3 === 0 ? null : String(pick) });
        return;
      default:
        changeTimer(policy, node, pick);
    }
  }

  /** Changes a timer in the records immediately, and in the journal. */
  function changeTimer(policy: string, node: string, pick: number): void {
    const row = { ...timerOf(node, pick), policy };
    const timer = pick % 3 === 0 ? { ...firingTimer(), state: "inactive" as const } : { ...firingTimer(), ...row };
    records.setTimer(policy, node, timer);
    write(
      pick % 3 === 0 ? { kind: "timer_gone", policy, node } : { kind: "timer", row: toTimerRow(policy, node, timer)! },
    );
  }

  for (const each of all) {
    now++;
    step(each);
  }
  return { records, journal, ids };
}

const byKey = <T>(rows: readonly T[], key: (row: T) => string): T[] =>
  rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));

/** Everything that the records return, except actions. */
function recordsView(records: RemediationRecords, ids: readonly string[]) {
  const rows = (policy: string): (TimerRow | null)[] =>
    [...records.timersOf(policy)].map(([node, timer]) => toTimerRow(policy, node, timer));
  const holdKey = ({ node, policy }: NodeHold) => `${node} ${policy}`;
  return {
    timers: POLICIES.map((policy) => byKey(rows(policy), (row) => row?.node ?? "")),
    timer: POLICIES.flatMap((policy) => NODES.map((node) => toTimerRow(policy, node, records.timer(policy, node)))),
    timed: records.policiesWithTimers().toSorted(),
    open: NODES.flatMap((node) => DRY_RUN_OR_REAL.map((dryRun) => records.openEpisode(node, dryRun))),
    suspended: NODES.flatMap((node) =>
      DRY_RUN_OR_REAL.flatMap((dryRun) => POLICIES.map((policy) => records.suspendedEpisode(policy, node, dryRun))),
    ),
    openEpisodes: byKey(records.openEpisodes(), ({ id }) => id),
    past: NODES.flatMap((node) => DRY_RUN_OR_REAL.map((dryRun) => records.closedEpisodesOf(node, dryRun))),
    closed: [...records.closedEpisodes()],
    episodes: ids.map((id) => records.episode(id)),
    holds: NODES.map((node) => byKey(records.holdsOn(node), holdKey)),
    allHolds: byKey(records.allHolds(), holdKey),
    facts: POLICIES.map((policy) => records.fact(`remediation.${policy}`)),
  };
}

const actionsView = (records: RemediationRecords, ids: readonly string[]) => ({
  actions: [...records.actions()],
  action: ids.map((id) => records.action(id)),
  actionsOf: ids.map((id) => records.actionsOf(id)),
});

describe("records to which changes were applied", () => {
  test("equal those loaded from the rows in the journal", () => {
    fc.assert(
      fc.property(moves, (all) => {
        const { records, journal, ids } = runMoves(all);
        const loaded = new RemediationRecords(journal.load(0));
        expect(recordsView(loaded, ids)).toEqual(recordsView(records, ids));
        expect(actionsView(loaded, ids)).toEqual(actionsView(records, ids));
      }),
      PROPERTY_RUNS,
    );
  });

  test("never return the same id twice, even after a restart", () => {
    fc.assert(
      fc.property(moves, (all) => {
        const { records, journal, ids } = runMoves(all);
        const rows = journal.load(0);
        const known = new Set([...rows.episodes, ...rows.actions].map(({ id }: Episode | Action) => id));
        const next = new RemediationRecords(rows).nextId("ep");
        expect(known.has(next)).toBe(false);
        expect(new Set([...ids, records.nextId("act")].map(numberOf)).size).toBe(ids.length + 1);
        expect(numberOf(next)).toBeGreaterThan(Math.max(0, ...[...known].map(numberOf)));
      }),
      PROPERTY_RUNS,
    );
  });

  test("equal, once pruned, those loaded without old rows, and keep every open episode", () => {
    fc.assert(
      fc.property(moves, fc.nat({ max: 60 }), (all, before) => {
        const { records, journal, ids } = runMoves(all);
        const openBefore = records.openEpisodes();
        records.prune(before);
        expect(records.openEpisodes()).toEqual(openBefore);
        const loaded = new RemediationRecords(journal.load(before));
        expect(recordsView(records, ids)).toEqual(recordsView(loaded, ids));
      }),
      PROPERTY_RUNS,
    );
  });

  test("keep exactly the actions that are unfinished, recent, or of a remembered episode", () => {
    fc.assert(
      fc.property(moves, fc.nat({ max: 60 }), (all, before) => {
        const { records, ids } = runMoves(all);
        const actions = [...records.actions()];
        records.prune(before);
        const kept = actions.filter(
          (action) => isUnfinished(action) || action.createdAt >= before || records.episode(action.episode) !== null,
        );
        expect([...records.actions()]).toEqual(kept);
        const byEpisode = ids.map((id) => kept.filter(({ episode }) => episode === id));
        expect(ids.map((id) => records.actionsOf(id))).toEqual(byEpisode);
      }),
      PROPERTY_RUNS,
    );
  });
});

test("writing a closed episode again replaces it", () => {
  const records = new RemediationRecords(createInMemoryJournal().load(0));
  const row = episodeOf(1, { state: "healed", closedAt: 5 });
  records.apply([
    { kind: "episode", row },
    { kind: "episode", row: { ...row, acted: 1 } },
  ]);
  expect(records.closedEpisodesOf("node_1", false)).toEqual([{ ...row, acted: 1 }]);
  expect([...records.closedEpisodes()]).toEqual([{ ...row, acted: 1 }]);
});

test("ids of episodes and actions share one counter, which continues after the greatest in the journal", () => {
  const records = new RemediationRecords({ ...createInMemoryJournal().load(0), lastNumber: 41 });
  expect([records.nextId("ep"), records.nextId("act"), records.nextId("act")]).toEqual([
    formatId("ep", 42),
    "act-43",
    "act-44",
  ]);
});

test("inactive timers are not stored, and policiesWithTimers lists only policies with others", () => {
  const records = new RemediationRecords(createInMemoryJournal().load(0));
  const timer = firingTimer();
  records.setTimer("one", "node_1", { ...timer, state: "inactive" });
  expect(records.policiesWithTimers()).toEqual([]);
  records.setTimer("one", "node_1", timer);
  expect([...records.timersOf("one")]).toEqual([["node_1", timer]]);
  expect(records.timer("one", "node_2").state).toBe("inactive");
  records.setTimer("one", "node_1", { ...timer, state: "inactive" });
  expect(records.policiesWithTimers()).toEqual([]);
  expect(records.timersOf("one").size).toBe(0);
});
