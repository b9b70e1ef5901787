import { expect, test } from "vitest";
import { actionView, decisionView } from "../../../../../src/web/api/row-views.ts";
import {
  type ActivityLine,
  actionLine,
  commandLine,
  decisionLine,
} from "../../../../../src/web/ui/page/activity/activity-lines.ts";
import { ActivityRows, ROWS_PER_READ } from "../../../../../src/web/ui/page/activity/activity-rows.ts";
import { heldDecision, SAMPLES_START_MS, verifiedAction } from "../../../api/remediation-view-fixture.ts";

/** The line of a decision `second` seconds after the start, about the node `second`. */
const line = (second: number): ActivityLine =>
  decisionLine(decisionView({ ...heldDecision, node: String(second), at: SAMPLES_START_MS + 1_000 * second }));

/** A daemon with `count` decisions, one a second, and no action. While it is unreachable no row can be read. */
class Journal {
  count: number;
  isReachable = true;
  onRead = (): void => {};
  readonly rows = new ActivityRows(async (kind, until) => {
    if (!this.isReachable) return null;
    const lines = kind !== "decisions" ? [] : Array.from({ length: this.count }, (_, second) => line(second)).reverse();
    const answer = lines.filter(({ storedAt }) => until === null || storedAt <= until).slice(0, ROWS_PER_READ);
    this.onRead();
    return answer;
  });

  constructor(count: number) {
    this.count = count;
  }

  /** Number of lines and the oldest one. */
  shown() {
    const lines = this.rows.lines("all");
    return [lines.length, lines.at(-1)?.node] as const;
  }
}

test("older rows can't be read before the latest ones were, and asking for them ends", async () => {
  const journal = new Journal(300);
  journal.isReachable = false;
  await journal.rows.load();
  expect(journal.rows.hasOlder("all")).toBe(false);
  await journal.rows.loadOlder("all", () => false);
  journal.isReachable = true;
  await journal.rows.load();
  expect(journal.rows.hasOlder("all")).toBe(true);
  await journal.rows.loadOlder("all", () => false);
  expect(journal.shown()).toEqual([300, "0"]);
  expect(journal.rows.hasOlder("all")).toBe(false);
});

test("older rows stay when the latest ones are read again", async () => {
  const journal = new Journal(500);
  await journal.rows.load();
  await journal.rows.loadOlder("all", () => journal.shown()[0] >= 300);
  const [before, oldest] = journal.shown();
  journal.count += 150;
  await journal.rows.load();
  expect(journal.shown()).toEqual([before + 150, oldest]);
});

test("older rows are dropped if rows between them and the latest were missed", async () => {
  const journal = new Journal(300);
  await journal.rows.load();
  journal.count += 1_000;
  await journal.rows.load();
  expect(journal.shown()).toEqual([ROWS_PER_READ, "1100"]);
  expect(journal.rows.hasOlder("all")).toBe(true);
});

test("a row that arrives while rows are read is kept, in its later state", async () => {
  const journal = new Journal(10);
  await journal.rows.load();
  journal.onRead = () => {
    journal.rows.put({ ...line(9), badge: "later" });
    journal.rows.put(line(10));
  };
  await journal.rows.load();
  expect(journal.rows.lines("all").slice(0, 2)).toMatchObject([{ node: "10" }, { node: "9", badge: "later" }]);
});

test("commands of operators are among the rows, with who gave them and what it did", () => {
  const given = { at: "2026-11-21T03:00:00.000Z", operator: "alice", node: null, action: null };
  const rows = new ActivityRows(async () => []);
  rows.put(commandLine({ ...given, command: "pause", detail: "paused: a deploy" }));
  rows.put(
    commandLine({
      ...given,
      at: "2026-11-21T02:00:00.000Z",
      command: "reload",
      operator: null,
      detail: "rejected: web.listen: missing",
    }),
  );
  expect(rows.lines("orders").map(({ badge, summary, detail, tone }) => [badge, summary, detail, tone])).toEqual([
    ["pause", "by alice", "paused: a deploy", "wait"],
    ["reload", "", "rejected: web.listen: missing", "bad"],
  ]);
  expect(rows.lines("actions")).toEqual([]);
});

test("rows are read again after a response that can't be shown", async () => {
  const journal = new Journal(3);
  journal.onRead = () => {
    throw new Error("unknown format");
  };
  await expect(journal.rows.load()).rejects.toThrow("unknown format");
  journal.onRead = () => {};
  journal.rows.put({ ...line(1), summary: "an older version" });
  await journal.rows.load();
  expect(journal.rows.lines("all").map(({ summary }) => summary)).not.toContain("an older version");
});

test("rows of the same time have the same order, however they arrived", () => {
  const lines = ["a", "b", "c", "d"].map((node) => ({ ...line(0), node, key: node }));
  const orderOf = (arriving: readonly ActivityLine[]) => {
    const rows = new ActivityRows(async () => []);
    for (const each of arriving) rows.put(each);
    return rows.lines("all").map(({ node }) => node);
  };
  expect(orderOf(lines)).toEqual(orderOf(lines.toReversed()));
});

test("an action is newer than the decision of the same time, whatever the name of the policy", () => {
  const rows = new ActivityRows(async () => []);
  const at = SAMPLES_START_MS;
  rows.put(decisionLine(decisionView({ ...heldDecision, policy: "a", at })));
  rows.put(actionLine(actionView({ ...verifiedAction, policy: "a", createdAt: at, sentAt: at, endedAt: null })));
  expect(rows.lines("all").map(({ kind }) => kind)).toEqual(["actions", "decisions"]);
});

/** An action that was created at the start and ended `second` seconds later. */
const longAction = (second: number): ActivityLine =>
  actionLine(
    actionView({ ...verifiedAction, createdAt: SAMPLES_START_MS, endedAt: SAMPLES_START_MS + 1_000 * second }),
  );

test("an action that changed lately is shown, even if many decisions were made since it was created", async () => {
  const rows = new ActivityRows(async (kind) => {
    if (kind === "orders") return [];
    if (kind === "actions") return [longAction(250)];
    return Array.from({ length: ROWS_PER_READ }, (_, second) => line(300 - second));
  });
  await rows.load();
  expect(rows.lines("all").findIndex(({ kind }) => kind === "actions")).toBe(50);
  for (let second = 301; second <= 1_500; second++) rows.put(line(second));
  rows.put(longAction(1_501));
  rows.dropOldest();
  expect(rows.lines("all")[0]).toMatchObject({ kind: "actions" });
});

test("no older action is skipped if those that were created with it changed lately", async () => {
  const sent = Array.from({ length: 210 }, (_, index): ActivityLine => {
    const createdAt = SAMPLES_START_MS + (index < 190 ? 1_000 : 0);
    const endedAt = index < ROWS_PER_READ ? SAMPLES_START_MS + 2_000_000 : createdAt;
    return actionLine(actionView({ ...verifiedAction, id: `act-${index}`, createdAt, endedAt }));
  });
  const rows = new ActivityRows(async (kind, until) => {
    const lines = kind === "actions" ? sent : [];
    return lines.filter(({ storedAt }) => until === null || storedAt <= until).slice(0, ROWS_PER_READ);
  });
  await rows.load();
  for (let second = 1; second <= 1_000; second++) rows.put(line(second));
  rows.dropOldest();
  await rows.loadOlder("actions", () => false);
  expect(rows.lines("actions")).toHaveLength(sent.length);
});

test("rows are known once those of all chosen kinds were read", async () => {
  const journal = new Journal(1);
  journal.isReachable = false;
  await journal.rows.load();
  expect(journal.rows.isKnown("all")).toBe(false);
  journal.isReachable = true;
  await journal.rows.load();
  expect((["all", "actions", "decisions", "orders"] as const).map((kind) => journal.rows.isKnown(kind))).toEqual([
    ...[true, true, true, true],
  ]);
});
