import type { Blocker, Evidence } from "../../model/remediation/decision.ts";
import type { ExplanationView, PolicyExplanationView } from "../../web/api/remediation-views.ts";
import type { ActionView, DecisionView, EpisodeView, HoldView, OrderView } from "../../web/api/row-views.ts";
import type { JsonObject } from "../daemon-api/client.ts";

/** The state of a policy on a node; null: unknown at that time. */
export interface PolicyReport {
  readonly policy: string;
  readonly mode: string | null;
  readonly verdict: string | null;
  readonly matched: boolean | null;
  readonly unknowns: PolicyExplanationView["unknowns"];
  readonly fields: Evidence["fields"] | null;
  readonly for_seconds: number | null;
  readonly timer: PolicyExplanationView["timer"];
  readonly episode: EpisodeView | null;
  /** Names of its steps; empty: unknown. */
  readonly steps: readonly string[];
  readonly blockers: readonly Blocker[] | null;
}

/** The journal's rows about one node, newest first. */
export interface NodeRows {
  readonly holds: readonly HoldView[];
  readonly episodes: readonly EpisodeView[];
  readonly actions: readonly ActionView[];
  readonly decisions: readonly DecisionView[];
  readonly orders: readonly OrderView[];
}

/** Why a node was or was not acted on, at one time. */
export interface NodeReport extends NodeRows {
  readonly id: string;
  readonly explained_at: string;
  /** Source of the report: only the running daemon knows verdicts, and the timers of the `past` are not kept. */
  readonly source: "daemon" | "journal" | "past";
  readonly policies: readonly PolicyReport[];
  /** The node in the fleet; null: unknown, or not in the fleet. */
  readonly seen: ReportedNode | null;
}

/** The node in the daemon's response. */
interface ReportedNode {
  readonly status: string;
  readonly name: string | null;
  readonly country: string | null;
  readonly region: string | null;
  readonly last_seen: string | null;
  readonly age_seconds: number | null;
}

/** A report on a policy that is only known from rows. */
export const emptyPolicyReport = (policy: string): PolicyReport => ({
  ...{ policy, mode: null, verdict: null, matched: null, unknowns: [], fields: null },
  ...{ for_seconds: null, timer: null, episode: null, steps: [], blockers: null },
});

/** The policies, followed by those that only the rows name. */
export function withRecordedPolicies(policies: readonly PolicyReport[], rows: NodeRows): readonly PolicyReport[] {
  const known = new Set(policies.map(({ policy }) => policy));
  const named = [...rows.episodes, ...rows.decisions, ...rows.actions].map(({ policy }) => policy);
  const rest = [...new Set(named)].filter((policy) => !known.has(policy)).sort();
  return [...policies, ...rest.map(emptyPolicyReport)];
}

/** Rows as they were at a time: later changes are undone, as far as a row records them. */
export function rowsAsOf(rows: NodeRows, at: string): NodeRows {
  const decisions = rows.decisions.filter((decision) => decision.at <= at);
  const actions = rows.actions.filter(({ created_at }) => created_at <= at).map((action) => actionAsOf(action, at));
  const asOf = (episode: EpisodeView) => episodeAsOf(episode, at, { decisions, actions });
  return {
    holds: rows.holds.filter((hold) => hold.at <= at && (hold.until === null || hold.until > at)),
    episodes: rows.episodes.filter(({ opened_at }) => opened_at <= at).map(asOf),
    actions,
    decisions,
    orders: rows.orders.filter((order) => order.at <= at),
  };
}

/** Whether a JSON response has the parts of a node's explanation that are used. */
export const isExplanation = (answer: JsonObject): answer is JsonObject & ExplanationView & Partial<ReportedNode> =>
  typeof answer.explained_at === "string" &&
  ["policies", "holds", "episodes", "actions", "decisions", "orders"].every((key) => Array.isArray(answer[key]));

function actionAsOf(action: ActionView, at: string): ActionView {
  const isSent = action.sent_at !== null && action.sent_at <= at;
  // An action that awaits approval now has done so since it was recorded.
  const isAsNow = action.ended_at === null ? isSent || action.state === "awaiting" : action.ended_at <= at;
  if (isAsNow) return action;
  return {
    ...action,
    ...{ outcome: null, proof: null, ended_at: null, detail: null },
    ...(action.answered_at !== null && action.answered_at <= at ? {} : { operator: null, answered_at: null }),
    state: isSent ? "sent" : "open",
    sent_at: isSent ? action.sent_at : null,
    in_doubt: false,
    rebooting_seen: false,
  };
}

/** The past state is not recorded; the step follows from the episode's decisions and actions. */
function episodeAsOf(
  episode: EpisodeView,
  at: string,
  { decisions, actions }: Pick<NodeRows, "decisions" | "actions">,
): EpisodeView {
  if (episode.state_at <= at) return episode;
  const own = [...decisions, ...actions].filter((row) => row.episode === episode.id);
  return {
    ...episode,
    ...{ state: "open", state_at: episode.opened_at, closed_at: null },
    ...{ retry_at: null, healed: false, quarantine: null, failures: 0 },
    step: Math.max(0, ...own.map(({ step }) => step)),
    acted: actions.filter((action) => action.episode === episode.id && action.sent_at !== null).length,
  };
}
