import type { PolicyView, StepView } from "../../../api/remediation-views.ts";
import { byId, type Child, createElement, definitions, fill } from "../dom.ts";
import { countNoun, episodeState, formatCount, formatDuration, humanize } from "../format.ts";

/** Why a policy has fallen back, and what ends it. */
const FELL_BACK =
  "It healed too few nodes (safety.efficacy), so it fell back to dry_run until its text changes or an operator resets the breaker.";

/** Shows every policy: its mode, its counts and what it says. */
export function showPolicies(policies: readonly PolicyView[]): void {
  fill(byId("policies"), policies, () =>
    policies.length === 0
      ? [createElement("p.empty.muted", "No policies are configured: the daemon only monitors.")]
      : policies.map(policyElement),
  );
}

function policyElement(policy: PolicyView): HTMLElement {
  const { name, mode, fell_back: hasFallenBack, proven, matched, pending, firing, unknown, episodes, spec } = policy;
  const { given_up: givenUp = 0 } = episodes;
  const shownApart = ["pending", "given_up"];
  const states = Object.entries(episodes).filter(([state, amount]) => !shownApart.includes(state) && amount > 0);
  const facts: readonly (readonly [name: string, value: Child] | null)[] = [
    ["when", createElement("code", spec.when)],
    spec.match === null ? null : ["match", createElement("code", spec.match)],
    ["for", `${formatDuration(spec.for_seconds)}, clear for ${formatDuration(spec.clear_for_seconds)}`],
    ["steps", spec.steps.map(stepLabel).join(" → ")],
    spec.windows.length === 0 ? null : ["windows", spec.windows.join(", ")],
    spec.mode === mode && !hasFallenBack
      ? null
      : [
          "mode",
          `${humanize(spec.mode)} configured, ${humanize(mode)} in force${hasFallenBack ? `. ${FELL_BACK}` : ""}`,
        ],
    [
      "proven",
      `${proven ? "an" : "no"} action under this version of the policy has been verified${proven ? "" : " yet"}`,
    ],
  ];
  return createElement(
    "details.policy",
    { "data-k": `policy ${name}` },
    createElement(
      "summary",
      { "data-k": `policy summary ${name}` },
      createElement("b", name),
      createElement(`span.chip.mode-${mode}`, humanize(mode)),
      hasFallenBack ? createElement("span.chip.tone-bad", { title: FELL_BACK }, "fell back") : null,
      createElement(
        "span.facts",
        matched === null
          ? null
          : createElement("span.fact", `matches ${formatCount(matched.nodes)} of ${countNoun(matched.of, "node")}`),
        countElement("pending", pending),
        countElement("firing", firing),
        ...states.map(([state, amount]) => countElement(episodeState(state), amount)),
        countElement("given up", givenUp),
        unknown === null ? null : countElement("unknown", unknown),
      ),
    ),
    createElement("dl.policy-spec", ...definitions(facts.filter((fact) => fact !== null))),
  );
}

const countElement = (name: string, amount: number): HTMLElement =>
  createElement(`span.fact${amount === 0 ? ".none" : ""}`, createElement("b", formatCount(amount)), ` ${name}`);

/** Returns what a step does in a few words. */
function stepLabel(step: StepView): string {
  if (step.action === "notify") return `notify ${step.receiver}`;
  if (step.action === "quarantine") return `quarantine ${formatDuration(step.duration_seconds)}`;
  return step.action === "reboot" && step.force ? "forced reboot" : step.action;
}
