import { describe, expect, test } from "vitest";
import type { Action, Episode } from "../../src/model/remediation/episode.ts";
import type { JournalContents } from "../../src/model/remediation/journal.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";
import { actionOf, closedEpisodeOf, episodeOf, holdOf, timerOf } from "../journal/arbitrary-changes.ts";

const EMPTY = { timers: [], episodes: [], actions: [], holds: [], facts: new Map<string, string>(), lastNumber: 0 };
const recordsOf = (contents: Partial<JournalContents> = {}): RemediationRecords =>
  new RemediationRecords({ ...EMPTY, ...contents });

const idsOf = (items: Iterable<{ readonly id: string }>) => [...items].map(({ id }) => id);

describe("an open episode", () => {
  const open = (number: number, overrides: Partial<Episode> = {}) =>
    episodeOf(number, { node: "node_1", ...overrides });
  const suspendedBy = (number: number, policy: string, overrides: Partial<Episode> = {}) =>
    open(number, { state: "suspended", policy, ...overrides });

  test("occupies its node unless it is suspended", () => {
    const records = recordsOf({ episodes: [open(1), suspendedBy(2, "a")] });
    expect([records.openEpisode("node_1", false)?.id, records.openEpisode("node_1", true)]).toEqual(["ep-1", null]);
    expect(idsOf(records.openEpisodesOf("node_1", false))).toEqual(["ep-1", "ep-2"]);
    expect(recordsOf({ episodes: [suspendedBy(2, "a")] }).openEpisode("node_1", false)).toBe(null);
  });

  test("that is suspended is found by its policy; the latest wins, and dry runs are separate", () => {
    const episodes = [
      suspendedBy(1, "a"),
      suspendedBy(2, "b"),
      suspendedBy(3, "a"),
      suspendedBy(4, "b", { dryRun: true }),
    ];
    const records = recordsOf({ episodes });
    expect(["a", "b", "c"].map((policy) => records.suspendedEpisode(policy, "node_1", false)?.id)).toEqual([
      ...["ep-3", "ep-2", undefined],
    ]);
    expect([records.suspendedEpisode("b", "node_1", true)?.id, records.suspendedEpisode("a", "node_1", true)]).toEqual([
      "ep-4",
      null,
    ]);
    expect(records.suspendedEpisode("a", "node_2", false)).toBe(null);
  });

  test("that resumes or closes is no longer suspended, and the other episodes of its node do not change", () => {
    const [first, second] = [suspendedBy(1, "a"), suspendedBy(2, "b")];
    const records = recordsOf({ episodes: [first, second] });
    records.apply([{ kind: "episode", row: { ...first, state: "firing" } }]);
    expect([records.suspendedEpisode("a", "node_1", false), records.openEpisode("node_1", false)?.id]).toEqual([
      null,
      "ep-1",
    ]);
    expect(records.suspendedEpisode("b", "node_1", false)?.id).toBe("ep-2");
    records.apply([{ kind: "episode", row: { ...second, state: "withdrawn", acted: 1, closedAt: 9 } }]);
    expect([records.suspendedEpisode("b", "node_1", false), idsOf(records.openEpisodes())]).toEqual([null, ["ep-1"]]);
    expect(idsOf(records.closedEpisodesOf("node_1", false))).toEqual(["ep-2"]);
  });

  test("that closes frees its node unless another episode occupies it", () => {
    const records = recordsOf({ episodes: [open(1)] });
    records.apply([{ kind: "episode", row: open(2) }]);
    records.apply([{ kind: "episode", row: closedEpisodeOf(1, 5, { node: "node_1" }) }]);
    expect(records.openEpisode("node_1", false)?.id).toBe("ep-2");
    records.apply([{ kind: "episode", row: closedEpisodeOf(2, 6, { node: "node_1" }) }]);
    expect(records.openEpisode("node_1", false)).toBe(null);
  });
});

describe("the closed episodes of a node", () => {
  test("come in the order in which they closed, without those of an earlier node with the same id", () => {
    const of = (number: number, closedAt: number, overrides: Partial<Episode> = {}) =>
      closedEpisodeOf(number, closedAt, { node: "node_1", ...overrides });
    const episodes = [of(3, 30), of(1, 10, { replaced: true }), of(2, 20), of(4, 40, { dryRun: true })];
    const records = recordsOf({ episodes });
    expect(idsOf(records.closedEpisodesOf("node_1", false))).toEqual(["ep-2", "ep-3"]);
    expect(idsOf(records.closedEpisodesOf("node_1", true))).toEqual(["ep-4"]);
    expect(records.closedEpisodesOf("node_2", false)).toEqual([]);
    expect(idsOf(records.closedEpisodes())).toEqual(["ep-1", "ep-2", "ep-3", "ep-4"]);
  });

  test("are kept only if they count as attempts", () => {
    const of = (number: number, overrides: Partial<Episode> = {}) =>
      closedEpisodeOf(number, number, { node: "node_1", policy: "offline", state: "cleared", acted: 0, ...overrides });
    const records = recordsOf();
    for (const row of [of(1), of(2, { acted: 1 }), of(3, { state: "given_up" }), of(4)]) {
      records.apply([{ kind: "episode", row: { ...row, closedAt: null, state: "firing" } }]);
      records.apply([{ kind: "episode", row }]);
    }
    expect(idsOf(records.closedEpisodesOf("node_1", false))).toEqual(["ep-2", "ep-3"]);
    expect(idsOf(records.closedEpisodes())).toEqual(["ep-2", "ep-3"]);
    expect(records.openEpisodes()).toEqual([]);
  });

  test("come in the order in which they closed, whenever they were opened", () => {
    const [first, second] = [1, 2].map((number) => episodeOf(number, { node: `node_${number}` }));
    const records = recordsOf({ episodes: [first!, second!] });
    for (const [at, episode] of [second!, first!].entries()) {
      records.apply([{ kind: "episode", row: { ...episode, state: "healed", acted: 1, closedAt: at + 1 } }]);
    }
    expect(idsOf(records.closedEpisodes())).toEqual(["ep-2", "ep-1"]);
  });
});

describe("actions", () => {
  const action = (number: number, overrides: Partial<Action> = {}) => actionOf(number, "ep-1", overrides);

  test("of an episode come in the order of their numbers", () => {
    const records = recordsOf({ actions: [10, 9, 2].map((number) => action(number)) });
    expect(idsOf(records.actionsOf("ep-1"))).toEqual(["act-2", "act-9", "act-10"]);
    expect(records.action("act-9")?.id).toBe("act-9");
    expect([records.action("act-3"), records.actionsOf("ep-2")]).toEqual([null, []]);
    records.apply([{ kind: "action", row: action(11) }]);
    expect(idsOf(records.actions())).toEqual(["act-2", "act-9", "act-10", "act-11"]);
  });

  test("are pruned with their episode unless they are unfinished", () => {
    const old = { createdAt: 10 };
    const records = recordsOf({
      episodes: [closedEpisodeOf(1, 20, { node: "node_1" }), closedEpisodeOf(2, 50, { node: "node_2" })],
      actions: [
        action(1, old),
        action(2, { ...old, state: "posting" }),
        action(3, { createdAt: 40 }),
        actionOf(4, "ep-2", old),
      ],
    });
    records.prune(40);
    expect(idsOf(records.actions())).toEqual(["act-2", "act-3", "act-4"]);
    expect([records.episode("ep-1"), records.episode("ep-2")?.id]).toEqual([null, "ep-2"]);
    expect([records.closedEpisodesOf("node_1", false), idsOf(records.actionsOf("ep-1"))]).toEqual([
      [],
      ["act-2", "act-3"],
    ]);
    records.prune(41);
    expect(idsOf(records.actions())).toEqual(["act-2", "act-4"]);
    records.prune(51);
    expect(idsOf(records.closedEpisodes())).toEqual([]);
  });
});

test("a node has at most one hold for each policy, and one for no policy", () => {
  const [held, veto] = [holdOf("node_1"), holdOf("node_1", { kind: "vetoed", policy: "a", reason: "too soon" })];
  const records = recordsOf({ holds: [held, veto, holdOf("node_2")] });
  records.apply([{ kind: "hold", row: { ...veto, reason: "again" } }]);
  expect(records.holdsOn("node_1").map(({ policy, reason }) => [policy, reason])).toEqual([
    [null, held.reason],
    ["a", "again"],
  ]);
  records.apply([{ kind: "hold_gone", node: "node_1", policy: null }]);
  expect(records.holdsOn("node_1").map(({ policy }) => policy)).toEqual(["a"]);
  records.apply([{ kind: "hold_gone", node: "node_1", policy: "a" }]);
  expect(records.holdsOn("node_1")).toEqual([]);
  expect(records.allHolds().map(({ node }) => node)).toEqual(["node_2"]);
});

test("facts and timers have the value that was written last", () => {
  const records = recordsOf({ facts: new Map([["paused", "since noon"]]), timers: [timerOf("node_1", 7)] });
  expect([records.fact("paused"), records.fact("breaker")]).toEqual(["since noon", null]);
  records.apply([{ kind: "fact", key: "paused", value: null }]);
  expect(records.fact("paused")).toBe(null);
  const { policy } = timerOf("node_1");
  expect([records.timer(policy, "node_1").trueMs, records.timer(policy, "node_2").state]).toEqual([7, "inactive"]);
  expect(records.policiesWithTimers()).toEqual([policy]);
  records.setTimer(policy, "node_2", { ...records.timer(policy, "node_1"), trueMs: 8 });
  records.setTimer(policy, "node_1", records.timer("another", "node_1"));
  expect([[...records.timersOf(policy).keys()], records.policiesWithTimers()]).toEqual([["node_2"], [policy]]);
  records.setTimer(policy, "node_2", records.timer("another", "node_1"));
  expect([records.timersOf(policy).size, records.policiesWithTimers()]).toEqual([0, []]);
});

test("identifiers continue after the last number", () => {
  const records = recordsOf({ lastNumber: 41 });
  expect([records.nextId("ep"), records.nextId("act")]).toEqual(["ep-42", "act-43"]);
});
