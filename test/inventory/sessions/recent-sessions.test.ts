import { describe, expect, test } from "vitest";
import type { SessionTotals } from "../../../src/inventory/sessions/session-totals.ts";
import { SESSION_STATUSES, type SessionRecord, type SessionStatus } from "../../../src/model/session.ts";
import { createWalks, session } from "./session-walks.ts";

describe("the sessions of a node are failing", () => {
  const failed = (id: string, parts: Partial<SessionRecord> = {}) => session(id, { status: "error", ...parts });
  const isFailing = (fold: SessionTotals) => {
    const { ids, quietWalks } = fold.view()!.nodes;
    return quietWalks[ids.indexOf("node_1")] === 0;
  };
  const WALK_MS = 600_000;

  test("if the last walk showed a new failure that is at most a minute old", () => {
    const { walk, fold } = createWalks();
    walk(0, [session("a")]);
    walk(WALK_MS, [failed("a", { startedAtMs: WALK_MS - 70_000, durationSeconds: 10 })]);
    expect(isFailing(fold)).toBe(true);
  });

  test("until a walk shows only known failures", () => {
    const { walk, fold } = createWalks();
    const old = failed("a", { startedAtMs: null });
    walk(0, [session("a")]);
    walk(WALK_MS, [old]);
    expect(isFailing(fold)).toBe(true);
    walk(2 * WALK_MS, [old]);
    expect(isFailing(fold)).toBe(false);
    walk(3 * WALK_MS, [old, failed("b", { durationSeconds: null })]);
    expect(isFailing(fold)).toBe(true);
  });

  test("counts consecutive walks without a new failure, by node", () => {
    const { walk, fold } = createWalks();
    const quiet = () => fold.view()!.nodes.quietWalks[fold.view()!.nodes.ids.indexOf("node_1")];
    for (const nth of [1, 2, 3]) {
      walk(nth * WALK_MS, [session("a")]);
      expect(quiet()).toBe(nth);
    }
    walk(4 * WALK_MS, [failed("a", { startedAtMs: null })]);
    expect(quiet()).toBe(0);
    walk(5 * WALK_MS, [session("b", { nodeId: "node_2" })]);
    walk(6 * WALK_MS, [session("c")]);
    expect(quiet()).toBe(1);
    for (let nth = 7; nth < 300; nth++) walk(nth * WALK_MS, [session("c")]);
    expect(quiet()).toBe(255);
  });

  test("not if all new failures are older than a minute", () => {
    const { walk, fold } = createWalks();
    walk(0, [session("a")]);
    walk(WALK_MS, [failed("a", { startedAtMs: WALK_MS - 71_000, durationSeconds: 10 })]);
    expect(isFailing(fold)).toBe(false);
  });

  test("not at the first walk, in which every failure is new", () => {
    const { walk, fold } = createWalks();
    walk(WALK_MS, [failed("a", { startedAtMs: WALK_MS - 20_000, durationSeconds: 10 })]);
    expect(isFailing(fold)).toBe(false);
  });

  test("if an incomplete walk showed the failure first", () => {
    const { walk, fold } = createWalks();
    const failure = failed("a", { startedAtMs: null });
    walk(0, [session("a"), session("b")]);
    walk(WALK_MS, [failure], "cut");
    expect(isFailing(fold)).toBe(false);
    walk(2 * WALK_MS, [failure, session("b")]);
    expect(isFailing(fold)).toBe(true);
  });
});

describe("recent sessions of a node", () => {
  const MINUTE = 60_000;
  const recent = (fold: SessionTotals, status: SessionStatus) => {
    const { ids, recent: columns } = fold.view()!.nodes;
    return columns[SESSION_STATUSES.indexOf(status)]![ids.indexOf("node_1")];
  };
  const closed = (id: string, startedAtMs: number | null, durationSeconds: number | null = 0) =>
    session(id, { status: "closed", startedAtMs, durationSeconds });

  test("are open, or ended at most five minutes before the walk", () => {
    const { walk, fold } = createWalks();
    const at = 60 * MINUTE;
    walk(at, [
      session("a"),
      closed("b", at - 5 * MINUTE),
      closed("c", at - 6 * MINUTE, 60),
      closed("d", at - 5 * MINUTE - 1),
    ]);
    expect(recent(fold, "active")).toBe(1);
    expect(recent(fold, "closed")).toBe(2);
    expect(fold.view()!.nodes.counts[SESSION_STATUSES.indexOf("closed")]![0]).toBe(3);
  });

  test("without times are those first seen ended within five minutes, and none at the first walk", () => {
    const { walk, fold } = createWalks();
    walk(0, [closed("a", null)]);
    expect(recent(fold, "closed")).toBe(0);
    const listed = [closed("a", null), closed("b", 0, null)];
    walk(MINUTE, listed);
    expect(recent(fold, "closed")).toBe(2);
    walk(5 * MINUTE, listed);
    expect(recent(fold, "closed")).toBe(2);
    walk(6 * MINUTE, listed);
    expect(recent(fold, "closed")).toBe(1);
    walk(6 * MINUTE + 1, listed);
    expect(recent(fold, "closed")).toBe(0);
  });

  test("are not those whose duration keeps increasing after their end", () => {
    const { walk, fold } = createWalks();
    for (let at = 0; at <= 10 * MINUTE; at += MINUTE) walk(at, [closed("a", 0, at / 1_000)]);
    expect(recent(fold, "closed")).toBe(0);
  });
});
