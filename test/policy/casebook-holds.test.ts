import { describe, expect, test } from "vitest";
import type { Action, Episode } from "../../src/model/episode.ts";
import { type Casebook, createCasebook } from "../../src/policy/casebook.ts";
import { actionOf, closedEpisodeOf, episodeOf, holdOf, timerOf } from "../store/sketch.ts";

const EMPTY = { timers: [], episodes: [], actions: [], holds: [], facts: new Map<string, string>(), lastNumber: 0 };
const bookOf = (said: Partial<Parameters<typeof createCasebook>[0]> = {}): Casebook =>
  createCasebook({ ...EMPTY, ...said });

const idsOf = (items: Iterable<{ readonly id: string }>) => [...items].map(({ id }) => id);

describe("an open episode", () => {
  const open = (number: number, said: Partial<Episode> = {}) => episodeOf(number, { node: "node_1", ...said });
  const suspendedBy = (number: number, policy: string, said: Partial<Episode> = {}) =>
    open(number, { state: "suspended", policy, ...said });

  test("has its node, but for a suspended one", () => {
    const book = bookOf({ episodes: [open(1), suspendedBy(2, "a")] });
    expect([book.open("node_1", false)?.id, book.open("node_1", true)]).toEqual(["ep-1", null]);
    expect(idsOf(book.openOf("node_1", false))).toEqual(["ep-1", "ep-2"]);
    expect(bookOf({ episodes: [suspendedBy(2, "a")] }).open("node_1", false)).toBe(null);
  });

  test("that is suspended is found by its policy, the last one, apart from dry runs", () => {
    const episodes = [
      suspendedBy(1, "a"),
      suspendedBy(2, "b"),
      suspendedBy(3, "a"),
      suspendedBy(4, "b", { shadow: true }),
    ];
    const book = bookOf({ episodes });
    expect(["a", "b", "c"].map((policy) => book.suspended(policy, "node_1", false)?.id)).toEqual([
      ...["ep-3", "ep-2", undefined],
    ]);
    expect([book.suspended("b", "node_1", true)?.id, book.suspended("a", "node_1", true)]).toEqual(["ep-4", null]);
    expect(book.suspended("a", "node_2", false)).toBe(null);
  });

  test("that goes on or closes is suspended no more, and the others of its node stay as they are", () => {
    const [first, second] = [suspendedBy(1, "a"), suspendedBy(2, "b")];
    const book = bookOf({ episodes: [first, second] });
    book.apply([{ kind: "episode", row: { ...first, state: "firing" } }]);
    expect([book.suspended("a", "node_1", false), book.open("node_1", false)?.id]).toEqual([null, "ep-1"]);
    expect(book.suspended("b", "node_1", false)?.id).toBe("ep-2");
    book.apply([{ kind: "episode", row: { ...second, state: "withdrawn", closedAt: 9 } }]);
    expect([book.suspended("b", "node_1", false), idsOf(book.openEpisodes())]).toEqual([null, ["ep-1"]]);
    expect(idsOf(book.past("node_1", false))).toEqual(["ep-2"]);
  });

  test("that closes frees its node, unless another one has taken it", () => {
    const book = bookOf({ episodes: [open(1)] });
    book.apply([{ kind: "episode", row: open(2) }]);
    book.apply([{ kind: "episode", row: closedEpisodeOf(1, 5, { node: "node_1" }) }]);
    expect(book.open("node_1", false)?.id).toBe("ep-2");
    book.apply([{ kind: "episode", row: closedEpisodeOf(2, 6, { node: "node_1" }) }]);
    expect(book.open("node_1", false)).toBe(null);
  });
});

describe("the past of a node", () => {
  test("has its closed episodes in the order in which they closed, those of a node that had its id before left out", () => {
    const of = (number: number, closedAt: number, said: Partial<Episode> = {}) =>
      closedEpisodeOf(number, closedAt, { node: "node_1", ...said });
    const episodes = [of(3, 30), of(1, 10, { replaced: true }), of(2, 20), of(4, 40, { shadow: true })];
    const book = bookOf({ episodes });
    expect(idsOf(book.past("node_1", false))).toEqual(["ep-2", "ep-3"]);
    expect(idsOf(book.past("node_1", true))).toEqual(["ep-4"]);
    expect(book.past("node_2", false)).toEqual([]);
    expect(idsOf(book.closed())).toEqual(["ep-1", "ep-2", "ep-3", "ep-4"]);
  });

  test("is told in the order in which episodes closed, whenever they were opened", () => {
    const [first, second] = [1, 2].map((number) => episodeOf(number, { node: `node_${number}` }));
    const book = bookOf({ episodes: [first!, second!] });
    for (const [at, episode] of [second!, first!].entries()) {
      book.apply([{ kind: "episode", row: { ...episode, state: "healed", closedAt: at + 1 } }]);
    }
    expect(idsOf(book.closed())).toEqual(["ep-2", "ep-1"]);
  });
});

describe("actions", () => {
  const action = (number: number, said: Partial<Action> = {}) => actionOf(number, "ep-1", said);

  test("of an episode come in the order of their numbers", () => {
    const book = bookOf({ actions: [10, 9, 2].map((number) => action(number)) });
    expect(idsOf(book.actionsOf("ep-1"))).toEqual(["act-2", "act-9", "act-10"]);
    expect(book.action("act-9")?.id).toBe("act-9");
    expect([book.action("act-3"), book.actionsOf("ep-2")]).toEqual([null, []]);
    book.apply([{ kind: "action", row: action(11) }]);
    expect(idsOf(book.actions())).toEqual(["act-2", "act-9", "act-10", "act-11"]);
  });

  test("are forgotten with their episode, unless something is left to do or to see", () => {
    const said = { createdAt: 10 };
    const book = bookOf({
      episodes: [closedEpisodeOf(1, 20, { node: "node_1" }), closedEpisodeOf(2, 50, { node: "node_2" })],
      actions: [
        action(1, said),
        action(2, { ...said, state: "posting" }),
        action(3, { createdAt: 40 }),
        actionOf(4, "ep-2", said),
      ],
    });
    book.prune(40);
    expect(idsOf(book.actions())).toEqual(["act-2", "act-3", "act-4"]);
    expect([book.episode("ep-1"), book.episode("ep-2")?.id]).toEqual([null, "ep-2"]);
    expect([book.past("node_1", false), idsOf(book.actionsOf("ep-1"))]).toEqual([[], ["act-2", "act-3"]]);
    book.prune(41);
    expect(idsOf(book.actions())).toEqual(["act-2", "act-4"]);
    book.prune(51);
    expect(idsOf(book.closed())).toEqual([]);
  });
});

test("holds are one a policy, and one of no policy", () => {
  const [held, veto] = [holdOf("node_1"), holdOf("node_1", { kind: "vetoed", policy: "a", reason: "too soon" })];
  const book = bookOf({ holds: [held, veto, holdOf("node_2")] });
  book.apply([{ kind: "hold", row: { ...veto, reason: "again" } }]);
  expect(book.holds("node_1").map(({ policy, reason }) => [policy, reason])).toEqual([
    [null, held.reason],
    ["a", "again"],
  ]);
  book.apply([{ kind: "hold_gone", node: "node_1", policy: null }]);
  expect(book.holds("node_1").map(({ policy }) => policy)).toEqual(["a"]);
  book.apply([{ kind: "hold_gone", node: "node_1", policy: "a" }]);
  expect(book.holds("node_1")).toEqual([]);
  expect(book.allHolds().map(({ node }) => node)).toEqual(["node_2"]);
});

test("facts and timers are as they were written last", () => {
  const book = bookOf({ facts: new Map([["paused", "since noon"]]), timers: [timerOf("node_1", 7)] });
  expect([book.fact("paused"), book.fact("breaker")]).toEqual(["since noon", null]);
  book.apply([{ kind: "fact", key: "paused", value: null }]);
  expect(book.fact("paused")).toBe(null);
  const { policy } = timerOf("node_1");
  expect([book.timer(policy, "node_1").trueMs, book.timer(policy, "node_2").state]).toEqual([7, "inactive"]);
  expect(book.timedPolicies()).toEqual([policy]);
  book.setTimer(policy, "node_2", { ...book.timer(policy, "node_1"), trueMs: 8 });
  book.setTimer(policy, "node_1", book.timer("another", "node_1"));
  expect([[...book.timersOf(policy).keys()], book.timedPolicies()]).toEqual([["node_2"], [policy]]);
  book.setTimer(policy, "node_2", book.timer("another", "node_1"));
  expect([book.timersOf(policy).size, book.timedPolicies()]).toEqual([0, []]);
});

test("identifiers go on from the last number", () => {
  const book = bookOf({ lastNumber: 41 });
  expect([book.nextId("ep"), book.nextId("act")]).toEqual(["ep-42", "act-43"]);
});
