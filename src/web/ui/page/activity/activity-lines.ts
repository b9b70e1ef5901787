import type { ActionView, DecisionView, RequestView } from "../../../api/row-views.ts";
import { byId, createElement, replaceChildren } from "../dom.ts";
import { formatDuration, humanize, timeOfDay } from "../format.ts";

/** The list of decisions and actions, newest first. */
interface Activity {
  /** Replaces the list. */
  show(decisions: readonly DecisionView[], actions: readonly ActionView[]): void;
  decision(row: DecisionView): void;
  action(row: ActionView): void;
}

/** A line of the list. */
interface ActivityLine {
  readonly key: string;
  readonly at: string;
  readonly kind: "action" | "decision";
  readonly tone: string;
  readonly badge: string;
  readonly node: string;
  readonly about: string;
  readonly detail: string;
  /** Every blocker; empty: nothing holds it. */
  readonly blockers: DecisionView["blockers"];
}

const ACTIVITY_LINES_MAX = 300;
/** About a dozen lines are visible at once. Further rows are in the API. */
const ACTIVITY_SHOWN_MAX = 100;

const FILTERS = [
  ["All", () => true],
  ["Actions", ({ kind }: ActivityLine) => kind === "action"],
  ["Decisions", ({ kind }: ActivityLine) => kind === "decision"],
] as const satisfies readonly (readonly [string, (line: ActivityLine) => boolean])[];

/** Creates the list. `nameOf`: returns a node's name by its id. */
export function createActivity(nameOf: (node: string) => string): Activity {
  const lines = new Map<string, ActivityLine>();
  const list = byId("activity");
  let filter: (typeof FILTERS)[number] = FILTERS[0];
  let frame = 0;

  const insert = (line: ActivityLine) => {
    lines.delete(line.key);
    lines.set(line.key, line);
    if (lines.size > ACTIVITY_LINES_MAX) lines.delete(lines.keys().next().value ?? "");
  };
  const schedulePaint = () => {
    if (frame === 0) frame = requestAnimationFrame(paint);
  };

  function paint(): void {
    frame = 0;
    const newestFirst = [...lines.values()].sort((one, other) => (one.at < other.at ? 1 : -1));
    const chosen = newestFirst.filter(filter[1]).slice(0, ACTIVITY_SHOWN_MAX);
    const nothing = createElement(
      "li",
      { class: "empty muted" },
      "No activity yet. Decisions and actions appear here as they happen.",
    );
    replaceChildren(list, chosen.length === 0 ? [nothing] : chosen.map((line) => lineElement(line, nameOf)));
  }

  replaceChildren(
    byId("activity-filter"),
    FILTERS.map((each) =>
      createElement(
        "button",
        {
          type: "button",
          "aria-pressed": String(each === filter),
          onclick: ({ currentTarget }) => {
            filter = each;
            for (const button of byId("activity-filter").children) {
              button.setAttribute("aria-pressed", String(button === currentTarget));
            }
            schedulePaint();
          },
        },
        each[0],
      ),
    ),
  );

  return {
    show(decisions, actions) {
      lines.clear();
      const all = [...decisions.map(decisionLine), ...actions.map(actionLine)];
      for (const line of all.sort((one, other) => (one.at < other.at ? -1 : 1))) insert(line);
      schedulePaint();
    },
    decision(row) {
      insert(decisionLine(row));
      schedulePaint();
    },
    action(row) {
      insert(actionLine(row));
      schedulePaint();
    },
  };
}

function lineElement(line: ActivityLine, nameOf: (node: string) => string): HTMLElement {
  return createElement(
    "li",
    {},
    createElement("time", { datetime: line.at }, timeOfDay(line.at, Date.now())),
    createElement("span", { class: `badge tone-${line.tone}` }, line.badge),
    createElement(
      "span",
      { class: "what" },
      nodeLink(line.node, nameOf(line.node), line.key),
      ` ${line.about}`,
      detailElement(line.detail, line.blockers),
    ),
  );
}

/** Returns the detail of a line and its blockers; null: there are none. */
export function detailElement(detail: string, blockers: DecisionView["blockers"]): HTMLElement | null {
  if (detail === "" && blockers.length === 0) return null;
  const reasons = blockers.flatMap((each, index) => [
    index === 0 ? "" : " · ",
    createElement("b", {}, humanize(each.reason)),
    ` ${each.detail}`,
  ]);
  return createElement("span", { class: "detail muted" }, detail, ...reasons);
}

/** Creates a link to the explanation of a node. */
export const nodeLink = (id: string, name: string, key: string): HTMLElement =>
  createElement("a", { href: `#node/${encodeURIComponent(id)}`, "data-k": `${key} ${id}` }, name);

function decisionLine(row: DecisionView): ActivityLine {
  const isAct = row.verdict === "act";
  const fields = Object.entries(row.evidence.fields).map(([field, value]) => `${field} ${String(value)}`);
  return {
    key: `${row.policy} ${row.node}`,
    at: row.at,
    kind: "decision",
    tone: isAct ? "act" : "hold",
    badge: isAct ? "act" : "hold",
    node: row.node,
    about: `${row.policy}${row.mode === "dry_run" ? " (dry run)" : ""}`,
    detail: isAct ? fields.join(", ") : "",
    blockers: row.blockers,
  };
}

function actionLine(row: ActionView): ActivityLine {
  const state = row.outcome ?? row.state;
  return {
    key: row.id,
    at: row.ended_at ?? row.sent_at ?? row.created_at,
    kind: "action",
    tone: toneOf(state),
    badge: humanize(state),
    node: row.node,
    about: `${requestLabel(row.request)}, ${row.policy}`,
    detail: actionDetail(row),
    blockers: [],
  };
}

/** Returns what an action does in one or two words. */
export function requestLabel(request: RequestView): string {
  if (request.kind === "reboot") return request.force ? "forced reboot" : "reboot";
  return request.kind === "quarantine"
    ? `quarantine for ${formatDuration(60 * request.duration_minutes)}`
    : request.kind;
}

/** Returns the result of an action in one line. */
export function actionDetail(row: ActionView): string {
  const took =
    row.ended_at !== null && row.sent_at !== null
      ? `after ${formatDuration((Date.parse(row.ended_at) - Date.parse(row.sent_at)) / 1_000)}`
      : "";
  const proof = row.proof === null ? "" : `proof: ${humanize(row.proof)}`;
  return [row.in_doubt ? "in doubt" : "", took, proof, row.detail ?? ""].filter((part) => part !== "").join(", ");
}

/** Returns the tone of an action's state or outcome. */
export function toneOf(state: string): string {
  if (state === "verified" || state === "healed") return "good";
  if (["ineffective", "refused", "failed", "in_doubt", "given_up"].includes(state)) return "bad";
  if (state === "awaiting") return "wait";
  return ["sent", "posting", "intended", "approved", "acting"].includes(state) ? "act" : "hold";
}
