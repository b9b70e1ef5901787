import type { ActionView, DecisionView, EpisodeView } from "../../../api/row-views.ts";
import { actionDetail, detailElement, requestName, toneOf } from "../panels/activity.ts";
import type { NodeDocument } from "../api.ts";
import { h } from "../dom.ts";
import { span, timeOfDay, words } from "../format.ts";

interface Moment {
  readonly at: string;
  readonly tone: string;
  readonly badge: string;
  readonly text: string;
  readonly detail: string;
  readonly blockers?: DecisionView["blockers"];
}

/** As many as a person reads; the rest is at the API. */
const MOMENTS_MAX = 60;

/** Everything that was decided and done about a node, newest first. */
export function historyOf({ episodes, actions, decisions }: NodeDocument, now: number): HTMLElement {
  const moments = [...episodes.flatMap(episodeMoments), ...actions.map(actionMoment), ...decisions.map(decisionMoment)]
    .sort((one, other) => (one.at < other.at ? 1 : -1))
    .slice(0, MOMENTS_MAX);
  if (moments.length === 0) return h("p", { class: "muted" }, "No decisions or actions recorded for this node.");
  return h(
    "ol",
    { class: "activity past" },
    ...moments.map(({ at, tone, badge, text, detail, blockers = [] }) =>
      h(
        "li",
        {},
        h("time", { datetime: at }, timeOfDay(at, now)),
        h("span", { class: `badge tone-${tone}` }, badge),
        h("span", { class: "what" }, text, detailElement(detail, blockers)),
      ),
    ),
  );
}

function episodeMoments(episode: EpisodeView): readonly Moment[] {
  const text = `${episode.id}, ${episode.policy}${episode.shadow ? " (dry run)" : ""}`;
  const begun = { at: episode.opened_at, tone: "hold", badge: "opened", text, detail: "" };
  if (episode.closed_at === null) return [begun];
  const took = span((Date.parse(episode.closed_at) - Date.parse(episode.opened_at)) / 1_000);
  const steps = `${episode.acted} ${episode.acted === 1 ? "step" : "steps"} in ${took}`;
  const closed = {
    at: episode.closed_at,
    tone: toneOf(episode.state),
    badge: words(episode.state),
    text,
    detail: steps,
  };
  return [begun, closed];
}

function actionMoment(action: ActionView): Moment {
  const state = action.outcome ?? action.state;
  return {
    at: action.ended_at ?? action.sent_at ?? action.created_at,
    tone: toneOf(state),
    badge: words(state),
    text: `${requestName(action.request)}, ${action.policy} (${action.id})`,
    detail: actionDetail(action),
  };
}

const decisionMoment = ({ at, policy, mode, verdict, blockers }: DecisionView): Moment => ({
  at,
  tone: verdict === "act" ? "act" : "hold",
  badge: verdict,
  text: `${policy}${mode === "dry_run" ? " (dry run)" : ""}`,
  detail: "",
  blockers,
});
