import type { Policy, StepView } from "../api.ts";
import { byId, type Child, filler, h } from "../dom.ts";
import { count, episodeState, span, words } from "../format.ts";

const fillPolicies = filler(byId("policies"));

/** Every policy: its mode, what it has to do, and what it says. */
export function showPolicies(policies: readonly Policy[]): void {
  fillPolicies(policies, () =>
    policies.length === 0
      ? [h("p", { class: "empty muted" }, "No policies are configured: the daemon only monitors.")]
      : policies.map(policyElement),
  );
}

function policyElement({ name, mode, fallen, proven, pending, firing, episodes, rule }: Policy): HTMLElement {
  const open = Object.entries(episodes)
    .filter(([state, amount]) => !["pending", "given_up"].includes(state) && amount > 0)
    .map(([state, amount]) => [episodeState(state), amount] as const);
  const givenUp = episodes.given_up ?? 0;
  return h(
    "details",
    { class: "policy", "data-k": `policy ${name}` },
    h(
      "summary",
      { "data-k": `policy summary ${name}` },
      h("b", {}, name),
      h("span", { class: `chip mode-${mode}` }, words(mode)),
      fallen
        ? h("span", { class: "chip tone-bad", title: "Its success rate fell below safety.efficacy, so it runs in dry_run" }, "fell back")
        : null,
      h(
        "span",
        { class: "facts" },
        ...facts([["pending", pending], ["firing", firing], ...open, ["given up", givenUp]]),
      ),
    ),
    h(
      "dl",
      { class: "rule" },
      ...pair("when", h("code", {}, rule.when)),
      ...(rule.match === null ? [] : pair("match", h("code", {}, rule.match))),
      ...pair("for", `${span(rule.for_seconds)}, clear for ${span(rule.clear_for_seconds)}`),
      ...pair("steps", rule.steps.map(stepName).join(" → ")),
      ...(rule.windows.length === 0 ? [] : pair("windows", rule.windows.join(", "))),
      ...(rule.mode === mode ? [] : pair("mode", `${words(rule.mode)} configured, ${words(mode)} in force`)),
      ...pair(
        "proven",
        proven ? "an action under this text was verified" : "no action under this text was verified yet",
      ),
    ),
  );
}

const pair = (name: string, value: Child): readonly HTMLElement[] => [h("dt", {}, name), h("dd", {}, value)];

const facts = (numbers: readonly (readonly [string, number])[]): readonly HTMLElement[] =>
  numbers.map(([name, amount]) =>
    h("span", { class: amount === 0 ? "fact none" : "fact" }, h("b", {}, count(amount)), ` ${words(name)}`),
  );

/** What a step does, in a few words. */
function stepName({ action, force, duration_seconds, receiver }: StepView): string {
  if (action === "notify") return `notify ${receiver}`;
  if (action === "quarantine") return `quarantine ${span(duration_seconds)}`;
  return force === true ? `forced ${action}` : action;
}
