import { runAtOnce } from "../../src/base/steps.ts";
import type { Notification, NotificationKind } from "../../src/model/remediation/notification.ts";
import { NODE_MARKS, type NodeMark, type RemediationView } from "../../src/remediation/status/views.ts";
import type { QuietNetwork } from "./daemon/quiet-network.ts";

/**
 * Returns all actions as lines, such as `forced reboot: verified`. The outcome is null if it has not ended or was never
 * sent.
 */
export const actionLines = (network: Pick<QuietNetwork, "actions">): readonly string[] =>
  network.actions().map(({ request, outcome }) => {
    const kind = request.kind === "reboot" && request.force ? "forced reboot" : request.kind;
    return `${kind}: ${outcome}`;
  });

/** Returns the notifications of a kind, in the order in which they were sent. */
export const notificationsOf = (
  network: Pick<QuietNetwork, "notifications">,
  kind: NotificationKind,
): readonly Notification[] => network.notifications.filter((notification) => notification.kind === kind);

/** Returns the states of all episodes, in the order in which they began. */
export const episodeStates = (network: Pick<QuietNetwork, "episodes">): readonly string[] =>
  network.episodes().map(({ state }) => state);

/** Returns the reasons of all decisions to hold so far, each once. */
export const holdReasonsOf = (network: Pick<QuietNetwork, "decisions">): readonly string[] => [
  ...new Set(network.decisions().flatMap(({ blockers }) => blockers.map(({ reason }) => reason))),
];

/** Returns the timer of the first policy on a node, or null if it has none. */
export const timerOf = (network: Pick<QuietNetwork, "explain">, node: string) =>
  network.explain(node).policies[0]!.timer;

/** Returns the reasons why fleet data is not trusted now. */
export function trustReasons(network: Pick<QuietNetwork, "controller">) {
  const { trust } = network.controller().view.status();
  return trust.map(({ reason }) => reason);
}

/** Returns the nodes that any action was sent to, each once. */
export const nodesActedOn = (network: Pick<QuietNetwork, "actions">): readonly string[] => [
  ...new Set(network.actions().flatMap(({ sentAt, node }) => (sentAt === null ? [] : [node]))),
];

/** Returns the most important mark of each node. */
export function marksOf(view: RemediationView): ReadonlyMap<string, NodeMark> {
  const marks = new Map<string, NodeMark>();
  const rankOf = (mark: NodeMark | undefined) => (mark === undefined ? -1 : NODE_MARKS.indexOf(mark));
  runAtOnce(view.nodeMarks((node, mark) => rankOf(mark) > rankOf(marks.get(node)) && marks.set(node, mark)));
  return marks;
}
