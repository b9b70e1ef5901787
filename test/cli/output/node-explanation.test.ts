import fc from "fast-check";
import { expect, test } from "vitest";
import {
  emptyPolicyReport,
  type NodeReport,
  type NodeRows,
  rowsAsOf,
} from "../../../src/cli/output/node-explanation.ts";
import { formatNodeReport } from "../../../src/cli/output/node-explanation-text.ts";
import { EXPLAINED_ROWS_MAX } from "../../../src/model/remediation/journal.ts";
import {
  actionView,
  decisionView,
  episodeView,
  holdView,
  operatorCommandView,
} from "../../../src/web/api/row-views.ts";
import {
  awaitingAction,
  episode,
  heldDecision,
  SAMPLES_START_MS,
  verifiedAction,
} from "../../web/api/remediation-view-fixture.ts";

const iso = (minute: number) => new Date(SAMPLES_START_MS + minute * 60_000).toISOString();
const ms = (minute: number) => SAMPLES_START_MS + minute * 60_000;

/** Increasing times, as in a row. */
const instants = (count: number) =>
  fc
    .array(fc.integer({ min: 0, max: 100 }), { minLength: count, maxLength: count })
    .map((all) => all.sort((a, b) => a - b));

const anAction = instants(3).map(([created, sent, ended]) =>
  actionView({ ...verifiedAction, createdAt: ms(created!), sentAt: ms(sent!), endedAt: ms(ended!) }),
);
const anEpisode = instants(3).map(([opened, state]) =>
  episodeView({ ...episode, state: "healed", openedAt: ms(opened!), stateAt: ms(state!), closedAt: ms(state!) }),
);
const aDecision = fc.integer({ min: 0, max: 100 }).map((at) => decisionView({ ...heldDecision, at: ms(at) }));

const someRows: fc.Arbitrary<NodeRows> = fc.record({
  holds: fc.constant([]),
  episodes: fc.array(anEpisode, { maxLength: 3 }),
  actions: fc.array(anAction, { maxLength: 3 }),
  decisions: fc.array(aDecision, { maxLength: 3 }),
  orders: fc.constant([]),
});

const noRows: NodeRows = { holds: [], episodes: [], actions: [], decisions: [], orders: [] };

const textOf = (parts: Partial<NodeReport>): string =>
  formatNodeReport(
    { id: "node_1", explained_at: iso(90), source: "daemon", seen: null, policies: [], ...noRows, ...parts },
    (_tone, text) => text,
  );

test("rows at a past time contain what began before it and nothing later", () => {
  fc.assert(
    fc.property(someRows, fc.integer({ min: 0, max: 100 }), (rows, minute) => {
      const at = iso(minute);
      const then = rowsAsOf(rows, at);
      const shown = [
        ...then.decisions.map((row) => row.at),
        ...then.actions.flatMap((row) => [row.created_at, row.sent_at, row.ended_at]),
        ...then.episodes.flatMap((row) => [row.opened_at, row.state_at, row.closed_at]),
      ];
      for (const instant of shown) expect(instant === null || instant <= at).toBe(true);
      expect(then.actions).toHaveLength(rows.actions.filter(({ created_at }) => created_at <= at).length);
      expect(then.episodes).toHaveLength(rows.episodes.filter(({ opened_at }) => opened_at <= at).length);
      for (const action of then.actions) expect(action.outcome === null).toBe(action.ended_at === null);
      for (const episode of then.episodes) expect(episode.state === "open").toBe(episode.closed_at === null);
    }),
  );
});

test("rows at a time after everything are unchanged", () => {
  fc.assert(
    fc.property(someRows, (rows) => {
      expect(rowsAsOf(rows, iso(101))).toEqual(rows);
    }),
  );
});

test("an episode's past step follows from its decisions and actions until then", () => {
  const rows: NodeRows = {
    holds: [],
    episodes: [episodeView({ ...episode, state: "given_up", stateAt: ms(90), closedAt: ms(90), step: 4, acted: 3 })],
    actions: [actionView({ ...verifiedAction, step: 2, createdAt: ms(40), sentAt: ms(41), endedAt: ms(60) })],
    decisions: [decisionView({ ...heldDecision, at: ms(16), step: 1 })],
    orders: [],
  };
  const stepAt = (minute: number) => {
    const [then] = rowsAsOf(rows, iso(minute)).episodes;
    return [then?.state, then?.step, then?.acted];
  };
  expect([16, 40, 41, 90].map(stepAt)).toEqual([
    ["open", 1, 0],
    ["open", 2, 0],
    ["open", 2, 1],
    ["given_up", 4, 3],
  ]);
});

test("a past action is not sent before it was sent, and under way until it ended", () => {
  const action = { ...verifiedAction, createdAt: ms(10), sentAt: ms(20), endedAt: ms(30), inDoubt: true };
  const rows: NodeRows = { holds: [], episodes: [], actions: [actionView(action)], decisions: [], orders: [] };
  const actionAt = (minute: number) => {
    const [then] = rowsAsOf(rows, iso(minute)).actions;
    return then && [then.state, then.outcome, then.sent_at, then.in_doubt];
  };
  expect([9, 10, 20, 30].map(actionAt)).toEqual([
    undefined,
    ["open", null, null, false],
    ["sent", null, iso(20), false],
    ["ended", "verified", iso(20), true],
  ]);
});

test("a hold is shown while it lasts, and a waiting action was already waiting", () => {
  const hold = { node: "node_1", policy: null, kind: "vetoed", at: ms(10), until: ms(20), reason: "lifted" } as const;
  const rows: NodeRows = {
    holds: [holdView(hold)],
    episodes: [],
    actions: [actionView(awaitingAction)],
    decisions: [],
    orders: [],
  };
  const holdsAt = (minute: number) => rowsAsOf(rows, iso(minute)).holds.length;
  expect([9, 10, 19, 20].map(holdsAt)).toEqual([0, 1, 1, 0]);
  expect(rowsAsOf(rows, iso(35)).actions[0]?.state).toBe("awaiting");
});

test("operator commands and approvals are shown as of that time", () => {
  const order = {
    command: "approve",
    operator: "alice",
    node: "node_1",
    action: "act-2",
    detail: "act-2 is approved",
  } as const;
  const action = { ...verifiedAction, createdAt: ms(10), sentAt: ms(20), endedAt: ms(30) };
  const rows: NodeRows = {
    holds: [],
    episodes: [],
    actions: [actionView({ ...action, answered: { operator: "alice", at: ms(15) } })],
    decisions: [],
    orders: [operatorCommandView({ at: ms(15), ...order })],
  };
  const textAt = (minute: number) => textOf({ source: "past", ...rowsAsOf(rows, iso(minute)) });
  for (const line of [
    "approved by alice, 2026-11-21 03:15:00 UTC",
    "2026-11-21 03:15:00 UTC  approve by alice: act-2 is approved",
  ]) {
    expect(textAt(30)).toContain(line);
    expect(textAt(14)).not.toContain(line);
  }
});

test("a firing timer is shown with the time for which the condition has been true or false, and when it was first true", () => {
  const timer = { state: "firing", since: iso(15), true_seconds: 0, clear_seconds: 0 } as const;
  const timerOf = (seconds: { readonly true_seconds?: number; readonly clear_seconds?: number }) =>
    /timer +(.*)/.exec(
      textOf({ policies: [{ ...emptyPolicyReport("reboot-offline"), timer: { ...timer, ...seconds } }] }),
    )?.[1];
  expect([timerOf({ true_seconds: 2_400 }), timerOf({ clear_seconds: 30 }), timerOf({})]).toEqual([
    "firing, true for 40m; first true at 2026-11-21 03:15:00 UTC",
    "firing, false again for 30s; first true at 2026-11-21 03:15:00 UTC",
    "firing; first true at 2026-11-21 03:15:00 UTC",
  ]);
});

test("the rest of the rows is counted, as far as it was read", () => {
  const lastLineOf = (count: number) =>
    textOf({ decisions: Array.from({ length: count }, () => decisionView(heldDecision)) })
      .trimEnd()
      .split("\n")
      .at(-1);
  expect([lastLineOf(99), lastLineOf(EXPLAINED_ROWS_MAX)]).toEqual([
    "  and 89 earlier: see --output json",
    "  and 90 or more earlier: see --output json",
  ]);
});

test("a policy whose last decision may not have been read is not said to have none", () => {
  const decisionOf = (count: number) =>
    /decision +(.*)/.exec(
      textOf({
        policies: [emptyPolicyReport("quiet")],
        decisions: Array.from({ length: count }, () => decisionView(heldDecision)),
      }),
    )?.[1];
  expect([decisionOf(99), decisionOf(EXPLAINED_ROWS_MAX)]).toEqual(["none yet", "none among the latest 100"]);
});
