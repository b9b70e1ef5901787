import type { Policy, StepView } from "../api.ts";
import { byId, type Child, createElement, createFiller } from "../dom.ts";
import { episodeState, formatCount, formatDuration, humanize } from "../format.ts";

const fillPolicies = createFiller(byId("policies"));

/** Shows every policy: its mode, its counts and its rule. */
export function showPolicies(policies: readonly Policy[]): void {
  fillPolicies(policies, () =>
    policies.length === 0
      ? [createElement("p", { class: "empty muted" }, "No policies are configured: the daemon only monitors.")]
      : policies.map(policyElement),
  );
}

function policyElement({ name, mode, fallen, proven, pending, firing, episodes, rule }: Policy): HTMLElement {
  const open = Object.entries(episodes)
    .filter(([state, amount]) => !["pending", "given_up"].includes(state) && amount > 0)
    .map(([state, amount]) => [episodeState(state), amount] as const);
  const givenUp = episodes.given_up ?? 0;
  return createElement(
    "details",
    { class: "policy", "data-k": `policy ${name}` },
    createElement(
      "summary",
      { "data-k": `policy summary ${name}` },
      createElement("b", {}, name),
      createElement("span", { class: `chip mode-${mode}` }, humanize(mode)),
      fallen
        ? createElement(
            "span",
            { class: "chip tone-bad", title: "Its success rate fell below safety.efficacy, so it runs in dry_run" },
            "fell back",
          )
        : null,
      createElement(
        "span",
        { class: "facts" },
        ...definitionPairs([["pending", pending], ["firing", firing], ...open, ["given up", givenUp]]),
      ),
    ),
    createElement(
      "dl",
      { class: "rule" },
      ...definitionPair("when", createElement("code", {}, rule.when)),
      ...(rule.match === null ? [] : definitionPair("match", createElement("code", {}, rule.match))),
      ...definitionPair(
        "for",
        `${formatDuration(rule.for_seconds)}, clear for ${formatDuration(rule.clear_for_seconds)}`,
      ),
      ...definitionPair("steps", rule.steps.map(stepLabel).join(" → ")),
      ...(rule.windows.length === 0 ? [] : definitionPair("windows", rule.windows.join(", "))),
      ...(rule.mode === mode
        ? []
        : definitionPair("mode", `${humanize(rule.mode)} configured, ${humanize(mode)} in force`)),
      ...definitionPair(
        "proven",
        proven ? "an action under this text has been verified" : "no action under this text has been verified yet",
      ),
    ),
  );
}

const definitionPair = (name: string, value: Child): readonly HTMLElement[] => [
  createElement("dt", {}, name),
  createElement("dd", {}, value),
];

const definitionPairs = (numbers: readonly (readonly [string, number])[]): readonly HTMLElement[] =>
  numbers.map(([name, amount]) =>
    createElement(
      "span",
      { class: amount === 0 ? "fact none" : "fact" },
      createElement("b", {}, formatCount(amount)),
      ` ${humanize(name)}`,
    ),
  );

/** Returns what a step does in a few words. */
function stepLabel(step: StepView): string {
  if (step.action === "notify") return `notify ${step.receiver}`;
  if (step.action === "quarantine") return `quarantine ${formatDuration(step.duration_seconds)}`;
  return step.action === "reboot" && step.force ? "forced reboot" : step.action;
}
