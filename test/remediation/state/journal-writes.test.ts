import { expect, test } from "vitest";
import { HOUR_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { PAUSE_FACT } from "../../../src/remediation/operator-holds.ts";
import { CLOCK_FACT } from "../../../src/remediation/state/journal-clock.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createRecordingLog, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { actionOf, decisionOf, episodeOf, holdOf } from "../../journal/arbitrary-changes.ts";

const fact = (value: string): JournalChange => ({ kind: "fact", key: "remediation.test", value });
const isOurs = (change: JournalChange) =>
  change.kind !== "fact" || ["remediation.test", PAUSE_FACT].includes(change.key);

/** A state with a journal that ended at `lastMs`, if it is not new. Its commits end when the test says so. */
async function openSlowState(lastMs?: number) {
  const { journal } = createMemoryStateStore();
  if (lastMs !== undefined) await journal.commit([{ kind: "fact", key: CLOCK_FACT, value: String(lastMs) }]);
  const commits: { changes: readonly JournalChange[]; end(error?: Error): void }[] = [];
  const state = await openRemediationState({
    journal: {
      ...journal,
      commit: (changes) =>
        new Promise((resolve, reject) => {
          const end = (error?: Error) => (error === undefined ? resolve() : reject(error));
          commits.push({ changes: changes.filter(isOurs), end });
        }),
    },
    clock: createVirtualClock(START_MS),
    log: createRecordingLog(),
    lostReason: null,
  });
  /** Lets what waits for a promise continue. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { state, commits, settle };
}

test("one commit is under way at a time; what is recorded meanwhile follows in one, in order", async () => {
  const { state, commits, settle } = await openSlowState();
  state.record([fact("1")]);
  expect(commits.map(({ changes }) => changes)).toEqual([[fact("1")]]);
  const [first, second] = [state.commit(() => [fact("3")]), state.commit(() => [fact("4")])];
  state.record([fact("2"), { kind: "decision", row: decisionOf(1) }]);
  await settle();
  expect(commits).toHaveLength(1);
  commits[0]!.end();
  await settle();
  expect(commits[1]!.changes).toEqual([fact("2"), { kind: "decision", row: decisionOf(1) }, fact("3")]);
  expect(state.records.fact("remediation.test")).toBe("2");
  commits[1]!.end();
  expect(await first).toBe(true);
  expect(state.records.fact("remediation.test")).toBe("3");
  await settle();
  commits[2]!.end();
  expect(await second).toBe(true);
  expect(state.records.fact("remediation.test")).toBe("4");
  expect(commits).toHaveLength(3);
});

test("a failed commit changes nothing, and keeps what was recorded in order", async () => {
  const { state, commits, settle } = await openSlowState();
  state.record([fact("1")]);
  const failing = state.commit(() => [{ kind: "episode", row: episodeOf(1) }]);
  state.record([{ kind: "episode", row: episodeOf(2) }]);
  commits[0]!.end(new Error("the disk is full"));
  await settle();
  expect(commits[1]!.changes).toEqual([
    fact("1"),
    { kind: "episode", row: episodeOf(2) },
    { kind: "episode", row: episodeOf(1) },
  ]);
  state.record([fact("5")]);
  commits[1]!.end(new Error("the disk is full"));
  expect(await failing).toBe(false);
  expect(state.records.episode("ep-1")).toBeNull();
  expect(state.journalProblem()).toBe("the journal can't be written: the disk is full");
  await settle();
  expect(commits).toHaveLength(2);
  const flushing = state.flush();
  expect(commits[2]!.changes).toEqual([{ kind: "episode", row: episodeOf(2) }, fact("5")]);
  commits[2]!.end();
  await flushing;
  expect(state.journalProblem()).toBeNull();
});

test("a row that is recorded while an older version of it is committed stays the newer one", async () => {
  const { state, commits, settle } = await openSlowState();
  const awaiting = actionOf(1, "ep-1", { state: "awaiting" });
  const committing = state.commit(() => [{ kind: "action", row: { ...awaiting, state: "approved" } }]);
  state.record([{ kind: "action", row: { ...awaiting, state: "lapsed" } }]);
  commits[0]!.end();
  expect(await committing).toBe(true);
  expect(state.records.action("act-1")?.state ?? "lapsed").toBe("lapsed");
  await settle();
  expect(commits[1]!.changes).toMatchObject([{ row: { state: "lapsed" } }]);
  commits[1]!.end();
});

test("a hold for all policies and one of a policy with the name null are both journaled", async () => {
  const { state, commits, settle } = await openSlowState();
  const holds = [null, "null"].map((policy): JournalChange => ({ kind: "hold", row: { ...holdOf("node_1"), policy } }));
  state.record([fact("1")]);
  state.record(holds);
  commits[0]!.end();
  await settle();
  expect(commits[1]!.changes).toEqual(holds);
});

test("changes that depend on the state are determined once all earlier commits have taken effect", async () => {
  const { state, commits, settle } = await openSlowState();
  const first = state.commit(() => [fact("1")]);
  const second = state.commit(() => (state.records.fact("remediation.test") === "1" ? null : [fact("2")]));
  commits[0]!.end();
  expect([await first, await second]).toEqual([true, false]);
  await settle();
  expect(commits).toHaveLength(1);
});

test("prepared changes take effect only when they are adopted, as they are by then", async () => {
  const { state, commits } = await openSlowState();
  const preparing = state.prepare([fact("1")], () => true);
  commits[0]!.end();
  const adopt = await preparing;
  expect(state.records.fact("remediation.test")).toBeNull();
  adopt!([fact("2")]);
  expect(state.records.fact("remediation.test")).toBe("2");
});

test("the parts of a mass event are committed one after another, each with what was recorded meanwhile", async () => {
  const { state, commits, settle } = await openSlowState();
  const recorded = state.recordInParts([[fact("1")], [], [fact("2")]]);
  expect(state.records.fact("remediation.test")).toBe("1");
  state.record([{ kind: "decision", row: decisionOf(1) }]);
  await settle();
  expect(commits.map(({ changes }) => changes)).toEqual([[fact("1")]]);
  commits[0]!.end();
  await settle();
  await settle();
  commits[1]!.end();
  await recorded;
  await settle();
  expect(commits.map(({ changes }) => changes)).toEqual([
    [fact("1")],
    [{ kind: "decision", row: decisionOf(1) }],
    [fact("2")],
  ]);
});

test("a journal that can't be written is tried once with all parts that are left", async () => {
  const { state, commits, settle } = await openSlowState();
  const recorded = state.recordInParts([1, 2, 3, 4].map((row) => [{ kind: "episode", row: episodeOf(row) }]));
  commits[0]!.end(new Error("the disk is full"));
  await recorded;
  await settle();
  expect(commits.map(({ changes }) => changes.length)).toEqual([1, 4]);
  commits[1]!.end();
  await settle();
  expect(state.journalProblem()).toBeNull();
});

test("while the journal can't be written, changes of a mass event stay queued, and the oldest decisions are dropped", async () => {
  const { state, commits, settle } = await openSlowState();
  state.record([fact("1")]);
  const decisions = [1, 2, 3].map((n): JournalChange => ({ kind: "decision", row: decisionOf(n) }));
  state.record(decisions);
  const holds = Array.from({ length: 150_000 }, (_, index): JournalChange => {
    return { kind: "hold_gone", node: `node_${index}`, policy: null };
  });
  state.record(holds);
  state.record([{ kind: "decision", row: decisionOf(4) }]);
  commits[0]!.end();
  await settle();
  expect(commits[1]!.changes).toEqual(holds);
});

const BEHIND_MS = 2 * HOUR_MS;

/** A state whose clock is behind by `BEHIND_MS`, with a row that was recorded and written since the start. */
async function openStateBehind(rowAt: (now: number) => JournalChange) {
  const slow = await openSlowState(START_MS - BEHIND_MS);
  const at = slow.state.now();
  slow.state.record([rowAt(at)]);
  slow.commits[0]!.end();
  await slow.settle();
  return { ...slow, at };
}

const pause = (at: number, ms: number | null): JournalChange => ({
  kind: "fact",
  key: PAUSE_FACT,
  value: JSON.stringify({ at, until: ms === null ? null : at + ms, reason: "test" }),
});
const hold = (at: number): JournalChange => ({ kind: "hold", row: holdOf("node_1", { at, until: at + HOUR_MS }) });
const action = (at: number, state: "awaiting" | "approved" | "rejected" | "lapsed"): JournalChange => ({
  kind: "action",
  row: actionOf(1, "ep-1", { state, createdAt: at, ...(state === "approved" ? { approvedAt: at } : {}) }),
});

/** Operator commands: the row before each, and as it changes it. */
const COMMANDS: readonly (readonly [string, (at: number) => JournalChange, (at: number) => JournalChange])[] = [
  ["a resume", (at) => pause(at, HOUR_MS), () => ({ kind: "fact", key: PAUSE_FACT, value: null })],
  ["a longer pause", (at) => pause(at, HOUR_MS), (at) => pause(at, 3 * HOUR_MS)],
  ["a pause without end", (at) => pause(at, HOUR_MS), (at) => pause(at, null)],
  ["a release", hold, () => ({ kind: "hold_gone", node: "node_1", policy: holdOf("node_1").policy })],
  ["an approval", (at) => action(at, "awaiting"), (at) => action(at, "approved")],
  ["a rejection", (at) => action(at, "awaiting"), (at) => action(at, "rejected")],
];

test.each(COMMANDS)("%s is not undone if the clock advances during its commit", async (_, before, after) => {
  const [during, earlier] = [await openStateBehind(before), await openStateBehind(before)];
  const committing = during.state.commit(() => [after(during.at)]);
  const checking = during.state.checkClock(() => START_MS);
  during.commits[1]!.end();
  expect(await committing).toBe(true);
  await checking;
  const committed = earlier.state.commit(() => [after(earlier.at)]);
  earlier.commits[1]!.end();
  await committed;
  await earlier.state.checkClock(() => START_MS);
  const rowsOf = ({ records }: typeof during.state) => [
    records.fact(PAUSE_FACT),
    records.allHolds(),
    [...records.actions()],
  ];
  expect(rowsOf(during.state)).toEqual(rowsOf(earlier.state));
  await Promise.all([during.settle(), earlier.settle()]);
  const lastWritten = ({ commits }: typeof during) => commits.flatMap(({ changes }) => changes).at(-1);
  expect(lastWritten(during)).toEqual(lastWritten(earlier));
});

test.each(COMMANDS)(
  "%s that fails while the clock advances leaves the row with its duration",
  async (_, before, after) => {
    const [during, never] = [await openStateBehind(before), await openStateBehind(before)];
    const committing = during.state.commit(() => [after(during.at)]);
    const checking = during.state.checkClock(() => START_MS);
    during.commits[1]!.end(new Error("the disk is full"));
    expect(await committing).toBe(false);
    await checking;
    during.state.record([]);
    await never.state.checkClock(() => START_MS);
    expect(during.commits.at(-1)!.changes).toEqual(never.commits.at(-1)!.changes);
  },
);

test("a row that is recorded during a commit stays the newer one if the clock advances after it", async () => {
  const { state, commits, settle, at } = await openStateBehind((now) => action(now, "awaiting"));
  const committing = state.commit(() => [action(at, "approved")]);
  state.record([action(at, "lapsed")]);
  const checking = state.checkClock(() => START_MS);
  commits[1]!.end();
  expect(await committing).toBe(true);
  await checking;
  await settle();
  expect(commits[2]!.changes).toEqual([action(at, "lapsed")]);
  expect(state.records.action("act-1")?.state).toBe("lapsed");
});
