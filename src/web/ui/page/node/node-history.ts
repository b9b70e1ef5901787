import type { ActionView, DecisionView, EpisodeView, OperatorCommandView } from "../../../api/row-views.ts";
import { detailElement } from "../activity/activity-elements.ts";
import { actionDetail, requestLabel, toneOf } from "../activity/activity-lines.ts";
import type { NodeDocument } from "../api.ts";
import { createElement } from "../dom.ts";
import { formatDuration, humanize, timeOfDay } from "../format.ts";

interface HistoryEntry {
  readonly at: string;
  readonly tone: string;
  readonly badge: string;
  readonly text: string;
  readonly detail: string;
  readonly blockers?: DecisionView["blockers"];
}

/** Further entries are in the API. */
const HISTORY_ENTRIES_MAX = 60;

/** Returns the decisions, actions and operator commands of a node, newest first. */
export function nodeHistoryElement(node: NodeDocument, now: number): HTMLElement {
  const { episodes, actions, decisions, orders } = node;
  const rows = [actions.map(actionEntry), decisions.map(decisionEntry), orders.map(orderEntry)];
  const entries = [...episodes.flatMap(episodeEntries), ...rows.flat()]
    .sort((one, other) => (one.at < other.at ? 1 : -1))
    .slice(0, HISTORY_ENTRIES_MAX);
  if (entries.length === 0)
    return createElement("p", { class: "muted" }, "No decisions or actions recorded for this node.");
  return createElement(
    "ol",
    { class: "activity history" },
    ...entries.map(({ at, tone, badge, text, detail, blockers = [] }) =>
      createElement(
        "li",
        {},
        createElement("time", { datetime: at }, timeOfDay(at, now)),
        createElement("span", { class: `badge tone-${tone}` }, badge),
        createElement("span", { class: "what" }, text),
        createElement(
          "div",
          { class: "line-body" },
          detailElement(detail.replaceAll(node.id, node.name ?? node.id), blockers),
        ),
      ),
    ),
  );
}

function episodeEntries(episode: EpisodeView): readonly HistoryEntry[] {
  const text = `${episode.id}, policy ${episode.policy}${episode.shadow ? " (dry run)" : ""}`;
  const opened = { at: episode.opened_at, tone: "hold", badge: "opened", text, detail: "" };
  if (episode.closed_at === null) return [opened];
  const took = formatDuration((Date.parse(episode.closed_at) - Date.parse(episode.opened_at)) / 1_000);
  const steps = `${episode.acted} ${episode.acted === 1 ? "step" : "steps"} in ${took}`;
  const closed = {
    at: episode.closed_at,
    tone: toneOf(episode.state),
    badge: humanize(episode.state),
    text,
    detail: steps,
  };
  return [opened, closed];
}

function actionEntry(action: ActionView): HistoryEntry {
  const state = action.outcome ?? action.state;
  return {
    at: action.ended_at ?? action.sent_at ?? action.created_at,
    tone: toneOf(state),
    badge: humanize(state),
    text: `${requestLabel(action.request)}, policy ${action.policy} (${action.id})`,
    detail: actionDetail(action),
  };
}

const orderEntry = ({ at, order, operator, detail }: OperatorCommandView): HistoryEntry => ({
  at,
  tone: "wait",
  badge: order,
  text: operator ?? "an operator",
  detail,
});

const decisionEntry = ({ at, policy, mode, verdict, blockers }: DecisionView): HistoryEntry => ({
  at,
  tone: verdict === "act" ? "act" : "hold",
  badge: verdict,
  text: `policy ${policy}${mode === "dry_run" ? " (dry run)" : ""}`,
  detail: "",
  blockers,
});
