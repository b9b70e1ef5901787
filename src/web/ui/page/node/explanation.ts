import type { PolicyExplanationView } from "../../../api/remediation-views.ts";
import { toneOf } from "../activity/activity-lines.ts";
import type { NodeDocument } from "../api.ts";
import { bar, type Child, createElement } from "../dom.ts";
import {
  episodeState,
  formatAge,
  formatCount,
  formatDuration,
  formatFields,
  formatPercent,
  formatUptime,
  humanize,
  timeOfDay,
} from "../format.ts";

/** Shows the fields of a node and their age. */
export function nodeFields(node: NodeDocument, now: number): HTMLElement {
  const rows: readonly (readonly [name: string, value: Child])[] = [
    ["last seen", node.last_seen == null ? "–" : formatAge(node.last_seen, now)],
    ["uptime", formatUptime(node.uptime_hours)],
    ["sessions", sessionsText(node)],
    ["bandwidth", node.bandwidth_gb == null ? "–" : `${node.bandwidth_gb.toFixed(1)} GB`],
    ["address", node.ip_address ?? "–"],
    ["version", node.version ?? "–"],
    ["cpu", usage(node.cpu_usage_ratio)],
    ["memory", usage(node.memory_usage_ratio)],
    ["disk", usage(node.disk_usage_ratio)],
    ["listed", node.age_seconds == null ? "–" : `${formatDuration(node.age_seconds)} ago`],
    ["detail read", node.detail_age_seconds == null ? "never" : `${formatDuration(node.detail_age_seconds)} ago`],
  ];
  return createElement(
    "dl",
    { class: "node-facts" },
    ...rows.map(([name, value]) =>
      createElement("div", {}, createElement("dt", {}, name), createElement("dd", {}, value)),
    ),
  );
}

function sessionsText({ active_sessions, sessions }: NodeDocument): string {
  const failed = sessions == null ? 0 : (sessions.error ?? 0) + (sessions.timeout ?? 0);
  return `${formatCount(active_sessions)}${failed === 0 ? "" : ` (${formatCount(failed)} failed)`}`;
}

function usage(ratio: number | null | undefined): Child {
  if (ratio == null) return "unknown";
  const tone = ratio > 0.95 ? "bad" : ratio > 0.85 ? "wait" : "good";
  return createElement(
    "span",
    { class: "usage" },
    bar(ratio, { class: `tone-${tone}`, "aria-hidden": "true" }),
    formatPercent(ratio),
  );
}

/** Shows a policy's verdict on a node, its timer, its steps and every blocker. */
export function policyElement(policy: PolicyExplanationView, now: number): HTMLElement {
  const isQuiet = policy.timer === null && policy.episode === null && policy.verdict === "false";
  return createElement(
    "details",
    { class: `explained ${isQuiet ? "quiet" : ""}`, open: !isQuiet, "data-k": `explained ${policy.policy}` },
    createElement(
      "summary",
      { "data-k": `explained summary ${policy.policy}` },
      createElement("b", {}, policy.policy),
      createElement("span", { class: `chip mode-${policy.mode}` }, humanize(policy.mode)),
      createElement("span", { class: `verdict verdict-${policy.verdict}` }, verdictText(policy)),
    ),
    timerElement(policy),
    stepsElement(policy, now),
    fieldsElement(policy),
    blockersElement(policy),
  );
}

function verdictText({ matched, verdict }: PolicyExplanationView): string {
  if (matched === false) return "does not apply to this node";
  if (verdict === "unknown") return "when: unknown";
  return verdict === "true" ? "when: true" : "when: false";
}

function timerElement({ timer, for_seconds }: PolicyExplanationView): Child {
  if (timer === null) return null;
  if (timer.state === "firing") {
    const clearing = timer.clear_seconds > 0 ? `, healthy again for ${formatDuration(timer.clear_seconds)}` : "";
    return createElement(
      "p",
      { class: "timer" },
      createElement("span", { class: "badge tone-bad" }, "firing"),
      ` true for ${formatDuration(timer.true_seconds)}${clearing}`,
    );
  }
  const share = for_seconds === 0 ? 1 : timer.true_seconds / for_seconds;
  return createElement(
    "p",
    { class: "timer" },
    createElement("span", { class: "badge tone-wait" }, "pending"),
    bar(share, { class: "tone-wait", "aria-hidden": "true" }),
    ` ${formatDuration(timer.true_seconds)} of ${formatDuration(for_seconds)}`,
  );
}

/** Shows the completed, current and remaining steps. */
function stepsElement({ episode, steps }: PolicyExplanationView, now: number): Child {
  if (episode === null) return null;
  const items = steps.map((step, index) => {
    const [state, label] =
      index < episode.step
        ? ["done", "done"]
        : index === episode.step
          ? ["now", "next or under way"]
          : ["later", "later"];
    return createElement(
      "li",
      { class: state, "aria-current": state === "now" ? "step" : null },
      step,
      createElement("span", { class: "unseen" }, ` (${label})`),
    );
  });
  const since = `${episode.id}, since ${timeOfDay(episode.state_at, now)}`;
  const quarantine =
    episode.quarantine === null
      ? null
      : `quarantine ends ${timeOfDay(episode.quarantine.ends_at, now)}${episode.quarantine.overdue ? ", overdue" : ""}`;
  return createElement(
    "div",
    { class: "episode" },
    createElement(
      "p",
      {},
      createElement("span", { class: `badge tone-${toneOf(episode.state)}` }, episodeState(episode.state)),
      ` ${[since, episode.shadow ? "dry run" : null, quarantine].filter(Boolean).join(" · ")}`,
    ),
    createElement("ol", { class: "steps" }, ...items),
  );
}

function fieldsElement({ fields, unknowns }: PolicyExplanationView): Child {
  const known = formatFields(fields, null);
  if (known.length + unknowns.length === 0) return null;
  return createElement(
    "dl",
    { class: "fields" },
    ...known.map(([name, value]) =>
      createElement("div", {}, createElement("dt", {}, name), createElement("dd", {}, value)),
    ),
    ...unknowns.map(({ field, why }) =>
      createElement("div", { class: "unknown" }, createElement("dt", {}, field), createElement("dd", {}, why)),
    ),
  );
}

function blockersElement({ blockers }: PolicyExplanationView): HTMLElement {
  if (blockers.length === 0) return createElement("p", { class: "guards-none" }, "✓ Nothing would hold an action now.");
  return createElement(
    "ul",
    { class: "guards", "aria-label": "Reasons that would hold an action now" },
    ...blockers.map(({ reason, detail, ends }) =>
      createElement(
        "li",
        {},
        createElement("b", {}, humanize(reason)),
        createElement("span", {}, `${detail}; ends ${ends}`),
      ),
    ),
  );
}
