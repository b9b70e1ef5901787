import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Action,
  CLOSED_STATES,
  type Episode,
  type NodeHold,
  OPEN_STATES,
  type TimerRow,
} from "../../src/model/remediation/episode.ts";
import { formatId, type JournalChange } from "../../src/model/remediation/journal.ts";
import { createRemediationRecords, isUnfinished, type RemediationRecords } from "../../src/policy/remediation-state.ts";
import { toTimerRow } from "../../src/policy/timers/timer.ts";
import { actionOf, episodeOf, holdOf, timerOf } from "../journal/arbitrary-changes.ts";
import { createInMemoryJournal, numberOf } from "../journal/in-memory-journal.ts";
import { firingTimer } from "./guard-case.ts";

const PROPERTY_RUNS = { numRuns: 1_000 };
const NODES = ["node_1", "node_2", "node_3"];
const POLICIES = ["one", "two"];
const DRY_RUN_OR_REAL = [true, false];

/** What may happen next, by draws that the life makes sense of. */
const move = fc.record({
  kind: fc.constantFrom(
    ...["begin", "begin", "close", "move", "act", "act", "end", "hold", "release", "fact", "timer"],
  ),
  node: fc.constantFrom(...NODES),
  policy: fc.constantFrom(...POLICIES),
  shadow: fc.boolean(),
  pick: fc.nat(),
});
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;
const moves = fc.array(move, { maxLength: 60, size: "max" });

/** A life of some nodes: every change is written to a journal, and applied to a casebook. */
function runMoves(all: readonly Move[]) {
  const journal = createInMemoryJournal();
  const records = createRemediationRecords(journal.load(0));
  const ids: string[] = [];
  let now = 0;
  const note = (...changes: JournalChange[]) => {
    journal.commit(changes);
    records.apply(changes);
  };
  const from = <T>(list: readonly T[], pick: number): T => list[pick % list.length]!;

  function number(kind: "ep" | "act"): number {
    const id = records.nextId(kind);
    ids.push(id);
    return numberOf(id);
  }

  function step({ kind, node, policy, shadow: dryRun, pick }: Move): void {
    const open = records.openEpisode(node, dryRun);
    switch (kind) {
      case "begin":
        if (open !== null) return;
        note({ kind: "episode", row: episodeOf(number("ep"), { node, policy, shadow: dryRun, openedAt: now }) });
        return;
      case "move":
        if (open === null) return;
        note({ kind: "episode", row: { ...open, state: from(OPEN_STATES, pick), acted: open.acted + 1 } });
        return;
      case "close":
        if (open === null) return;
        note({ kind: "episode", row: { ...open, state: from(CLOSED_STATES, pick), closedAt: now } });
        return;
      case "act":
        if (open === null) return;
        note({
          kind: "action",
          row: actionOf(number("act"), open.id, {
            node,
            shadow: dryRun,
            createdAt: now,
            state: "intended",
            outcome: null,
          }),
        });
        return;
      case "end": {
        const live = [...records.actions()].filter(isUnfinished);
        if (live.length === 0) return;
        const state = from(["posting", "sent", "ended", "withdrawn"] as const, pick);
        note({ kind: "action", row: { ...from(live, pick), state, endedAt: now } });
        return;
      }
      case "hold":
        note({ kind: "hold", row: holdOf(node, { policy: pick % 2 === 0 ? null : policy, at: now }) });
        return;
      case "release":
        note({ kind: "hold_gone", node, policy: pick % 2 === 0 ? null : policy });
        return;
      case "fact":
        note({ kind: "fact", key: `warden.${policy}`, value: pick % 3 === 0 ? null : String(pick) });
        return;
      default:
        time(policy, node, pick);
    }
  }

  /** Timers move at once; the journal is told. */
  function time(policy: string, node: string, pick: number): void {
    const row = { ...timerOf(node, pick), policy };
    const timer = pick % 3 === 0 ? { ...firingTimer(), state: "inactive" as const } : { ...firingTimer(), ...row };
    records.setTimer(policy, node, timer);
    note(
      pick % 3 === 0 ? { kind: "timer_gone", policy, node } : { kind: "timer", row: toTimerRow(policy, node, timer)! },
    );
  }

  for (const each of all) {
    now++;
    step(each);
  }
  return { casebook: records, journal, ids, now };
}

const byKey = <T>(rows: readonly T[], key: (row: T) => string): T[] =>
  rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));

/** All that a casebook shows, but for actions. */
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
    facts: POLICIES.map((policy) => records.fact(`warden.${policy}`)),
  };
}

const actionsView = (records: RemediationRecords, ids: readonly string[]) => ({
  actions: [...records.actions()],
  action: ids.map((id) => records.action(id)),
  actionsOf: ids.map((id) => records.actionsOf(id)),
});

describe("a casebook that was fed by changes", () => {
  test("is the one that is loaded from the rows which they leave behind", () => {
    fc.assert(
      fc.property(moves, (all) => {
        const { casebook: records, journal, ids } = runMoves(all);
        const loaded = createRemediationRecords(journal.load(0));
        expect(recordsView(loaded, ids)).toEqual(recordsView(records, ids));
        expect(actionsView(loaded, ids)).toEqual(actionsView(records, ids));
      }),
      PROPERTY_RUNS,
    );
  });

  test("gives no number twice, also after it was loaded", () => {
    fc.assert(
      fc.property(moves, (all) => {
        const { casebook: records, journal, ids } = runMoves(all);
        const rows = journal.load(0);
        const known = new Set([...rows.episodes, ...rows.actions].map(({ id }: Episode | Action) => id));
        const next = createRemediationRecords(rows).nextId("ep");
        expect(known.has(next)).toBe(false);
        expect(new Set([...ids, records.nextId("act")].map(numberOf)).size).toBe(ids.length + 1);
        expect(numberOf(next)).toBeGreaterThan(Math.max(0, ...[...known].map(numberOf)));
      }),
      PROPERTY_RUNS,
    );
  });

  test("forgets as one that is loaded without what is old: the past, and never what is open", () => {
    fc.assert(
      fc.property(moves, fc.nat({ max: 60 }), (all, before) => {
        const { casebook: records, journal, ids } = runMoves(all);
        const openBefore = records.openEpisodes();
        records.prune(before);
        expect(records.openEpisodes()).toEqual(openBefore);
        const loaded = createRemediationRecords(journal.load(before));
        expect(recordsView(records, ids)).toEqual(recordsView(loaded, ids));
      }),
      PROPERTY_RUNS,
    );
  });

  test("keeps the actions that are not over, those of what is remembered, and the young; and no others", () => {
    fc.assert(
      fc.property(moves, fc.nat({ max: 60 }), (all, before) => {
        const { casebook: records, ids } = runMoves(all);
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

test("an episode that is written down once more is no second one", () => {
  const records = createRemediationRecords(createInMemoryJournal().load(0));
  const row = episodeOf(1, { state: "healed", closedAt: 5 });
  records.apply([
    { kind: "episode", row },
    { kind: "episode", row: { ...row, acted: 1 } },
  ]);
  expect(records.closedEpisodesOf("node_1", false)).toEqual([{ ...row, acted: 1 }]);
  expect([...records.closedEpisodes()]).toEqual([{ ...row, acted: 1 }]);
});

test("ids count together, and go on from the greatest that the journal knows", () => {
  const records = createRemediationRecords({ ...createInMemoryJournal().load(0), lastNumber: 41 });
  expect([records.nextId("ep"), records.nextId("act"), records.nextId("act")]).toEqual([
    formatId("ep", 42),
    "act-43",
    "act-44",
  ]);
});

test("a timer that is inactive is none, and a policy without timers is not timed", () => {
  const records = createRemediationRecords(createInMemoryJournal().load(0));
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
