import type { Notification, NotificationKind } from "../../src/model/remediation/notification.ts";
import type { QuietNetwork } from "./quiet-network.ts";

/** What was done, a line each: what, and how it ended; null: it has not ended, or was never sent. */
export const actionLines = (context: Pick<QuietNetwork, "actions">): readonly string[] =>
  context.actions().map(({ request, outcome }) => {
    const what = request.kind === "reboot" && request.force ? "forced reboot" : request.kind;
    return `${what}: ${outcome}`;
  });

/** The notices of a kind, in the order in which they were told. */
export const notificationLines = (
  context: Pick<QuietNetwork, "notices">,
  kind: NotificationKind,
): readonly Notification[] => context.notices.filter((notification) => notification.kind === kind);

/** States of all episodes, in the order in which they began. */
export const episodeLines = (context: Pick<QuietNetwork, "episodes">): readonly string[] =>
  context.episodes().map(({ state }) => state);

/** Reasons of every decision to hold so far, each once. */
export const holdReasonsOf = (context: Pick<QuietNetwork, "decisions">): readonly string[] => [
  ...new Set(context.decisions().flatMap(({ blockers }) => blockers.map(({ reason }) => reason))),
];

/** Nodes that anything was sent to, each once. */
export const nodesActedOn = (context: Pick<QuietNetwork, "actions">): readonly string[] => [
  ...new Set(context.actions().flatMap(({ sentAt, node }) => (sentAt === null ? [] : [node]))),
];
