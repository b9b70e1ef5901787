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
import { type Change, idOf } from "../../src/model/remediation/journal.ts";
import { type Casebook, createCasebook, isLive } from "../../src/policy/remediation-state.ts";
import { rowOf } from "../../src/policy/timers/timer.ts";
import { createPlainJournal, numberOf } from "../journal/in-memory-journal.ts";
import { actionOf, episodeOf, holdOf, timerOf } from "../journal/arbitrary-changes.ts";
import { firingTimer } from "./guard-case.ts";

const RUNS = { numRuns: 1_000 };
const NODES = ["node_1", "node_2", "node_3"];
const POLICIES = ["one", "two"];
const WORLDS = [true, false];

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
function live(all: readonly Move[]) {
  const journal = createPlainJournal();
  const casebook = createCasebook(journal.load(0));
  const ids: string[] = [];
  let now = 0;
  const note = (...changes: Change[]) => {
    journal.commit(changes);
    casebook.apply(changes);
  };
  const from = <T>(list: readonly T[], pick: number): T => list[pick % list.length]!;

  function number(kind: "ep" | "act"): number {
    const id = casebook.nextId(kind);
    ids.push(id);
    return numberOf(id);
  }

  function step({ kind, node, policy, shadow, pick }: Move): void {
    const open = casebook.open(node, shadow);
    switch (kind) {
      case "begin":
        if (open !== null) return;
        note({ kind: "episode", row: episodeOf(number("ep"), { node, policy, shadow, openedAt: now }) });
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
          row: actionOf(number("act"), open.id, { node, shadow, createdAt: now, state: "intended", outcome: null }),
        });
        return;
      case "end": {
        const live = [...casebook.actions()].filter(isLive);
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
    casebook.setTimer(policy, node, timer);
    note(pick % 3 === 0 ? { kind: "timer_gone", policy, node } : { kind: "timer", row: rowOf(policy, node, timer)! });
  }

  for (const each of all) {
    now++;
    step(each);
  }
  return { casebook, journal, ids, now };
}

const byKey = <T>(rows: readonly T[], key: (row: T) => string): T[] =>
  rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));

/** All that a casebook shows, but for actions. */
function shown(casebook: Casebook, ids: readonly string[]) {
  const rows = (policy: string): (TimerRow | null)[] =>
    [...casebook.timersOf(policy)].map(([node, timer]) => rowOf(policy, node, timer));
  const holdKey = ({ node, policy }: NodeHold) => `${node} ${policy}`;
  return {
    timers: POLICIES.map((policy) => byKey(rows(policy), (row) => row?.node ?? "")),
    timer: POLICIES.flatMap((policy) => NODES.map((node) => rowOf(policy, node, casebook.timer(policy, node)))),
    timed: casebook.timedPolicies().toSorted(),
    open: NODES.flatMap((node) => WORLDS.map((shadow) => casebook.open(node, shadow))),
    suspended: NODES.flatMap((node) =>
      WORLDS.flatMap((shadow) => POLICIES.map((policy) => casebook.suspended(policy, node, shadow))),
    ),
    openEpisodes: byKey(casebook.openEpisodes(), ({ id }) => id),
    past: NODES.flatMap((node) => WORLDS.map((shadow) => casebook.past(node, shadow))),
    closed: [...casebook.closed()],
    episodes: ids.map((id) => casebook.episode(id)),
    holds: NODES.map((node) => byKey(casebook.holds(node), holdKey)),
    allHolds: byKey(casebook.allHolds(), holdKey),
    facts: POLICIES.map((policy) => casebook.fact(`warden.${policy}`)),
  };
}

const shownActions = (casebook: Casebook, ids: readonly string[]) => ({
  actions: [...casebook.actions()],
  action: ids.map((id) => casebook.action(id)),
  actionsOf: ids.map((id) => casebook.actionsOf(id)),
});

describe("a casebook that was fed by changes", () => {
  test("is the one that is loaded from the rows which they leave behind", () => {
    fc.assert(
      fc.property(moves, (all) => {
        const { casebook, journal, ids } = live(all);
        const loaded = createCasebook(journal.load(0));
        expect(shown(loaded, ids)).toEqual(shown(casebook, ids));
        expect(shownActions(loaded, ids)).toEqual(shownActions(casebook, ids));
      }),
      RUNS,
    );
  });

  test("gives no number twice, also after it was loaded", () => {
    fc.assert(
      fc.property(moves, (all) => {
        const { casebook, journal, ids } = live(all);
        const rows = journal.load(0);
        const known = new Set([...rows.episodes, ...rows.actions].map(({ id }: Episode | Action) => id));
        const next = createCasebook(rows).nextId("ep");
        expect(known.has(next)).toBe(false);
        expect(new Set([...ids, casebook.nextId("act")].map(numberOf)).size).toBe(ids.length + 1);
        expect(numberOf(next)).toBeGreaterThan(Math.max(0, ...[...known].map(numberOf)));
      }),
      RUNS,
    );
  });

  test("forgets as one that is loaded without what is old: the past, and never what is open", () => {
    fc.assert(
      fc.property(moves, fc.nat({ max: 60 }), (all, before) => {
        const { casebook, journal, ids } = live(all);
        const openBefore = casebook.openEpisodes();
        casebook.prune(before);
        expect(casebook.openEpisodes()).toEqual(openBefore);
        const loaded = createCasebook(journal.load(before));
        expect(shown(casebook, ids)).toEqual(shown(loaded, ids));
      }),
      RUNS,
    );
  });

  test("keeps the actions that are not over, those of what is remembered, and the young; and no others", () => {
    fc.assert(
      fc.property(moves, fc.nat({ max: 60 }), (all, before) => {
        const { casebook, ids } = live(all);
        const actions = [...casebook.actions()];
        casebook.prune(before);
        const kept = actions.filter(
          (action) => isLive(action) || action.createdAt >= before || casebook.episode(action.episode) !== null,
        );
        expect([...casebook.actions()]).toEqual(kept);
        const byEpisode = ids.map((id) => kept.filter(({ episode }) => episode === id));
        expect(ids.map((id) => casebook.actionsOf(id))).toEqual(byEpisode);
      }),
      RUNS,
    );
  });
});

test("an episode that is written down once more is no second one", () => {
  const casebook = createCasebook(createPlainJournal().load(0));
  const row = episodeOf(1, { state: "healed", closedAt: 5 });
  casebook.apply([
    { kind: "episode", row },
    { kind: "episode", row: { ...row, acted: 1 } },
  ]);
  expect(casebook.past("node_1", false)).toEqual([{ ...row, acted: 1 }]);
  expect([...casebook.closed()]).toEqual([{ ...row, acted: 1 }]);
});

test("ids count together, and go on from the greatest that the journal knows", () => {
  const casebook = createCasebook({ ...createPlainJournal().load(0), lastNumber: 41 });
  expect([casebook.nextId("ep"), casebook.nextId("act"), casebook.nextId("act")]).toEqual([
    idOf("ep", 42),
    "act-43",
    "act-44",
  ]);
});

test("a timer that is inactive is none, and a policy without timers is not timed", () => {
  const casebook = createCasebook(createPlainJournal().load(0));
  const timer = firingTimer();
  casebook.setTimer("one", "node_1", { ...timer, state: "inactive" });
  expect(casebook.timedPolicies()).toEqual([]);
  casebook.setTimer("one", "node_1", timer);
  expect([...casebook.timersOf("one")]).toEqual([["node_1", timer]]);
  expect(casebook.timer("one", "node_2").state).toBe("inactive");
  casebook.setTimer("one", "node_1", { ...timer, state: "inactive" });
  expect(casebook.timedPolicies()).toEqual([]);
  expect(casebook.timersOf("one").size).toBe(0);
});
