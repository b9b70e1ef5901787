import type { Notice, NoticeKind } from "../../src/model/remediation/notification.ts";
import type { WardRun } from "./quiet-network.ts";

/** What was done, a line each: what, and how it ended; null: it has not ended, or was never sent. */
export const deeds = (ward: Pick<WardRun, "actions">): readonly string[] =>
  ward.actions().map(({ request, outcome }) => {
    const what = request.kind === "reboot" && request.force ? "forced reboot" : request.kind;
    return `${what}: ${outcome}`;
  });

/** The notices of a kind, in the order in which they were told. */
export const told = (ward: Pick<WardRun, "notices">, kind: NoticeKind): readonly Notice[] =>
  ward.notices.filter((notice) => notice.kind === kind);

/** States of all episodes, in the order in which they began. */
export const courses = (ward: Pick<WardRun, "episodes">): readonly string[] =>
  ward.episodes().map(({ state }) => state);

/** Reasons of every decision to hold so far, each once. */
export const heldBy = (ward: Pick<WardRun, "decisions">): readonly string[] => [
  ...new Set(ward.decisions().flatMap(({ blockers }) => blockers.map(({ reason }) => reason))),
];

/** Nodes that anything was sent to, each once. */
export const touched = (ward: Pick<WardRun, "actions">): readonly string[] => [
  ...new Set(ward.actions().flatMap(({ sentAt, node }) => (sentAt === null ? [] : [node]))),
];
