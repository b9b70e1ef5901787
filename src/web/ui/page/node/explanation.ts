import type { PolicyExplanationView } from "../../../api/remediation-views.ts";
import { blockerList } from "../activity/activity-elements.ts";
import { toneOf } from "../activity/activity-lines.ts";
import type { NodeDocument } from "../api.ts";
import { bar, type Child, createElement, definitions } from "../dom.ts";
import {
  episodeState,
  formatAge,
  formatCount,
  formatDuration,
  formatFields,
  formatGigabytes,
  formatPercent,
  formatUptime,
  humanize,
  timeOfDay,
  withLocalTimes,
} from "../format.ts";

/** Usage above this is shown as high, as on the Grafana dashboards. */
const USAGE_HIGH = 0.8;
/** Usage above this is shown as critical, as on the Grafana dashboards. */
const USAGE_CRITICAL = 0.95;

/** Creates the list of a node's fields, with the ages of its record in the list and of its detail. */
export function nodeFields(node: NodeDocument, now: number): HTMLElement {
  const rows: readonly (readonly [name: string, value: Child])[] = [
    ["last seen", node.last_seen == null ? "–" : formatAge(node.last_seen, now)],
    ["uptime", formatUptime(node.uptime_hours)],
    ["sessions", sessionsText(node)],
    ["bandwidth", formatGigabytes(node.bandwidth_gb)],
    ["IP address", node.ip_address ?? "–"],
    ["version", node.version ?? "–"],
    ["CPU", usage(node.cpu_usage_ratio)],
    ["memory", usage(node.memory_usage_ratio)],
    ["disk", usage(node.disk_usage_ratio)],
    ["listed", node.age_seconds == null ? "–" : `${formatDuration(node.age_seconds)} ago`],
    ["detail read", detailAge(node)],
  ];
  return createElement("dl.node-facts", ...definitions(rows));
}

/** Returns how long ago the node's detail was read. A node that the daemon does not list has none. */
function detailAge({ known, detail_age_seconds: age }: NodeDocument): string {
  if (age == null) return known ? "not yet" : "–";
  return `${formatDuration(age)} ago`;
}

function sessionsText({ active_sessions, sessions }: NodeDocument): string {
  const failed = sessions == null ? 0 : (sessions.error ?? 0) + (sessions.timeout ?? 0);
  return `${formatCount(active_sessions)}${failed === 0 ? "" : ` (${formatCount(failed)} failed)`}`;
}

function usage(ratio: number | null | undefined): Child {
  if (ratio == null) return "unknown";
  const tone = ratio > USAGE_CRITICAL ? "bad" : ratio > USAGE_HIGH ? "wait" : "good";
  return createElement("span.usage", bar(ratio, tone, { "aria-hidden": "true" }), formatPercent(ratio));
}

/**
 * Creates the explanation of a policy for a node: its verdict, timer, steps, fields and every blocker. Blockers are not
 * known if the daemon does not list the node, as on a standby.
 */
export function policyElement(policy: PolicyExplanationView, isListed: boolean, now: number): HTMLElement {
  const isQuiet = policy.timer === null && policy.episode === null && policy.verdict === "false";
  return createElement(
    "details.explained",
    // The key says whether it is open by default, so that a closed policy opens when it begins to fire.
    { open: !isQuiet, "data-k": `explained ${policy.policy} ${isQuiet}` },
    createElement(
      "summary",
      { "data-k": `explained summary ${policy.policy}` },
      createElement("b", policy.policy),
      createElement(`span.chip.mode-${policy.mode}`, humanize(policy.mode)),
      createElement(`span.verdict.verdict-${policy.verdict}`, verdictText(policy)),
    ),
    timerElement(policy, now),
    stepsElement(policy, now),
    policy.matched === false ? null : fieldsElement(policy),
    policy.matched === false || !isListed ? null : blockersElement(policy),
  );
}

const blockersElement = ({ blockers }: PolicyExplanationView): HTMLElement =>
  blockers.length === 0
    ? createElement("p.guards-none", "✓ Nothing would hold an action now.")
    : blockerList("Reasons that would hold an action now", blockers);

function verdictText({ matched, verdict }: PolicyExplanationView): string {
  if (matched === false) return "does not match this node";
  return matched === null && verdict === "unknown" ? "match: unknown" : `when: ${verdict}`;
}

function timerElement({ timer, for_seconds, other_status_at }: PolicyExplanationView, now: number): Child {
  if (timer === null) return null;
  if (timer.state === "firing") {
    return createElement("p.timer", createElement("span.badge.tone-bad", "firing"), firingText(timer));
  }
  const share = for_seconds === 0 ? 1 : timer.true_seconds / for_seconds;
  return createElement(
    "p.timer",
    createElement("span.badge.tone-wait", "pending"),
    bar(share, "wait", { "aria-hidden": "true" }),
    ` ${formatDuration(timer.true_seconds)} of ${formatDuration(for_seconds)}`,
    other_status_at && `; another status was last seen at ${timeOfDay(other_status_at, now)}`,
  );
}

/** Returns for how long the condition of a firing timer has been true or false, or null if that is not known yet. */
function firingText({ true_seconds, clear_seconds }: NonNullable<PolicyExplanationView["timer"]>): string | null {
  if (clear_seconds > 0) return ` false again for ${formatDuration(clear_seconds)}`;
  return true_seconds > 0 ? ` true for ${formatDuration(true_seconds)}` : null;
}

/** Creates the list of the completed, current and remaining steps of an open episode. Returns null if there is none. */
function stepsElement({ episode, steps }: PolicyExplanationView, now: number): Child {
  if (episode === null) return null;
  const { id, state, state_at, step: current, acted, healed, dry_run: dryRun, quarantine } = episode;
  let actions = 0;
  const items = steps.map((step, index) => {
    if (step !== "notify") actions++;
    // The index stays at a step that healed the node. It is past the last step if no more steps will be taken.
    if (index === current && !healed) {
      const unseen = createElement("span.unseen", " (next or under way)");
      return createElement("li.now", { "aria-current": "step" }, step, unseen);
    }
    const isDone = index <= current && actions <= acted;
    const words = isDone ? "done" : current < steps.length ? "later" : "not taken";
    return createElement(`li.${isDone ? "done" : "later"}`, step, createElement("span.unseen", ` (${words})`));
  });
  const facts = [`${id}, since ${timeOfDay(state_at, now)}`];
  if (dryRun) facts.push("dry run");
  if (quarantine !== null) {
    facts.push(`quarantine ends ${timeOfDay(quarantine.ends_at, now)}${quarantine.overdue ? ", overdue" : ""}`);
  }
  const badge = createElement(`span.badge.tone-${toneOf(state)}`, episodeState(state));
  return createElement(
    "div.episode",
    createElement("p", badge, ` ${facts.join(" · ")}`),
    createElement("ol.steps", ...items),
  );
}

function fieldsElement({ fields, unknowns }: PolicyExplanationView): Child {
  const values = new Map(formatFields(fields, null).map(([name, value]) => [name, withLocalTimes(value)] as const));
  if (values.size + unknowns.length === 0) return null;
  const unknown = new Set(unknowns.map(({ field }) => field));
  return createElement(
    "dl.fields",
    ...definitions([...values].filter(([name]) => !unknown.has(name))),
    ...unknowns.map(({ field, why }) => {
      // A stale field has a value.
      const text = [values.get(field), why].filter((part) => part !== undefined).join(", ");
      return createElement("div.unknown", createElement("dt", field), createElement("dd", text));
    }),
  );
}
