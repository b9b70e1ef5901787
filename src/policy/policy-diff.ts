import { formatDuration } from "../base/duration.ts";
import { MODES, type PolicyRule, type Step } from "../model/policy/policy.ts";
import { compilePolicy, type Policy } from "./policy.ts";
import { isTrueIn, SAMPLE_NOW, type SampledState, sampleStates } from "./policy-diff-samples.ts";
import { actionText } from "./test-expectation.ts";

/** How a policy differs from what it was, in one respect. */
export interface PolicyDifference {
  readonly policy: string;
  /** The key that differs; `policy`: all of it. */
  readonly key: string;
  /** `more`: it could newly touch nodes, or sooner; `less`: it no longer does, or later; `other`: neither for sure. */
  readonly effect: "more" | "less" | "other";
  readonly text: string;
}

/** What new policies could newly touch, and what they no longer do. */
export function comparePolicies(
  before: readonly PolicyRule[],
  after: readonly PolicyRule[],
): readonly PolicyDifference[] {
  const old = new Map(before.map((rule) => [rule.name, rule]));
  const names = new Set(after.map(({ name }) => name));
  const removed = before.filter(({ name }) => !names.has(name));
  return [
    ...after.flatMap((rule) => {
      const was = old.get(rule.name);
      return was === undefined ? [describePresence(rule, "more", "is new")] : comparePolicy(was, rule);
    }),
    ...removed.map((rule) => describePresence(rule, "less", "is gone")),
    ...compareOrder(before, after),
  ];
}

/** A policy that is in dry_run or only notifies never acts on a node, so adding or removing it changes nothing. */
const describePresence = (rule: PolicyRule, effect: "more" | "less", what: string): PolicyDifference => ({
  policy: rule.name,
  key: "policy",
  effect: rule.mode !== "dry_run" && rule.steps.some(({ action }) => action !== "notify") ? effect : "other",
  text: `${what}: ${rule.mode}, ${stepsText(rule.steps)}, when ${rule.when}`,
});

function comparePolicy(was: PolicyRule, is: PolicyRule): readonly PolicyDifference[] {
  const found: PolicyDifference[] = [];
  const addDifference = (key: string, effect: PolicyDifference["effect"], text: string) =>
    found.push({ policy: is.name, key, effect, text });
  const compareValue = (key: string, from: number, to: number, spell: (value: number) => string, moreIfUp: boolean) => {
    if (from !== to) addDifference(key, to > from === moreIfUp ? "more" : "less", `${spell(to)}, was ${spell(from)}`);
  };
  const oldMode = MODES.indexOf(was.mode);
  compareValue("mode", oldMode, MODES.indexOf(is.mode), (index) => MODES[index]!, true);
  if (was.match !== is.match || was.when !== is.when)
    found.push(...compareSelection(compilePolicy(was), compilePolicy(is)));
  compareValue("for", was.forMs, is.forMs, formatDuration, false);
  compareValue("clear_for", was.clearForMs, is.clearForMs, formatDuration, false);
  if (was.maxAgeMs !== is.maxAgeMs)
    addDifference("max_age", "other", `${ageText(is.maxAgeMs)}, was ${ageText(was.maxAgeMs)}`);
  found.push(...compareSteps(was, is));
  compareValue("retry.episodes", was.retry.episodes, is.retry.episodes, String, true);
  compareValue("retry.every", was.retry.everyMs, is.retry.everyMs, formatDuration, false);
  compareValue("retry.forget_after", was.retry.forgetAfterMs, is.retry.forgetAfterMs, formatDuration, false);
  // No window is every hour; one window more is more hours.
  const always = [was, is].map(({ windows }) => windows.length === 0) as [boolean, boolean];
  if (always[0] !== always[1]) addDifference("windows", always[1] ? "more" : "less", describeWindowsChange(was, is));
  else found.push(...compareLists(is.name, "windows", was.windows, is.windows, "more"));
  const obstacles = ({ blockedBy }: PolicyRule) => blockedBy.map((each) => JSON.stringify(each));
  found.push(...compareLists(is.name, "blocked_by", obstacles(was), obstacles(is), "less"));
  return found;
}

/** Nodes that only one of the versions selects, with a state of such a node as an example. */
function compareSelection(was: Policy, is: Policy): readonly PolicyDifference[] {
  const expressions = [was.match, was.when, is.match, is.when].flatMap((each) => each ?? []);
  const expressionOf = ({ match, when }: Policy, state: SampledState) =>
    (match === null || isTrueIn(match, state)) && isTrueIn(when, state);
  const examples: { more: SampledState | null; less: SampledState | null } = { more: null, less: null };
  for (const state of sampleStates(expressions)) {
    const [before, after] = [expressionOf(was, state), expressionOf(is, state)];
    if (after && !before) examples.more ??= state;
    if (before && !after) examples.less ??= state;
    if (examples.more !== null && examples.less !== null) break;
  }
  const key = was.rule.when === is.rule.when ? "match" : was.rule.match === is.rule.match ? "when" : "match and when";
  const policy = is.rule.name;
  const found: PolicyDifference[] = [];
  if (examples.more !== null)
    found.push({ policy, key, effect: "more", text: `newly matched: ${stateText(examples.more)}` });
  if (examples.less !== null)
    found.push({ policy, key, effect: "less", text: `no longer matched: ${stateText(examples.less)}` });
  if (found.length > 0) return found;
  return [
    { policy, key, effect: "other", text: "changed text; no sampled node is matched by only one of the two versions" },
  ];
}

function compareSteps(was: PolicyRule, is: PolicyRule): readonly PolicyDifference[] {
  if (JSON.stringify(was.steps) === JSON.stringify(is.steps)) return [];
  const [before, after] = [was, is].map(({ steps }) => new Set(steps.map(stepText))) as [Set<string>, Set<string>];
  const added = [...after].filter((each) => !before.has(each));
  const removed = [...before].filter((each) => !after.has(each));
  const found: PolicyDifference[] = [];
  if (added.length > 0)
    found.push({ policy: is.name, key: "steps", effect: "more", text: `newly ${added.join(", ")}` });
  if (removed.length > 0)
    found.push({ policy: is.name, key: "steps", effect: "less", text: `no longer ${removed.join(", ")}` });
  if (found.length > 0) return found;
  const text = `${stepsText(is.steps)}, was ${stepsText(was.steps)}: order, number or verification`;
  return [{ policy: is.name, key: "steps", effect: "other", text }];
}

function compareLists(
  policy: string,
  key: string,
  before: readonly string[],
  after: readonly string[],
  ifAdded: "more" | "less",
): readonly PolicyDifference[] {
  const ifRemoved = ifAdded === "more" ? "less" : "more";
  const noted = (effect: PolicyDifference["effect"], what: string) => (each: string) => ({
    policy,
    key,
    effect,
    text: `${what} ${each}`,
  });
  return [
    ...after.filter((each) => !before.includes(each)).map(noted(ifAdded, "newly")),
    ...before.filter((each) => !after.includes(each)).map(noted(ifRemoved, "no longer")),
  ];
}

/** The first policy that fires has the node: another order gives some nodes to others. */
function compareOrder(before: readonly PolicyRule[], after: readonly PolicyRule[]): readonly PolicyDifference[] {
  const names = (rules: readonly PolicyRule[], others: readonly PolicyRule[]) =>
    rules.map(({ name }) => name).filter((name) => others.some((other) => other.name === name));
  const [was, is] = [names(before, after), names(after, before)];
  if (was.join("\n") === is.join("\n")) return [];
  const first = is.find((name, index) => was[index] !== name)!;
  return [{ policy: first, key: "order", effect: "other", text: `now ${is.join(", ")}; was ${was.join(", ")}` }];
}

const describeWindowsChange = (was: PolicyRule, is: PolicyRule): string =>
  is.windows.length === 0 ? `always, was ${was.windows.join(", ")}` : `${is.windows.join(", ")}, was always`;

const stepsText = (steps: readonly Step[]): string => steps.map(stepText).join(", ");

function stepText(step: Step): string {
  switch (step.action) {
    case "notify":
      return `notify ${step.receiver}`;
    case "quarantine":
      return `quarantine ${formatDuration(step.durationMs)}`;
    case "reboot":
      return actionText({ kind: "reboot", force: step.force });
    case "disconnect":
      return step.action;
    default:
      return step satisfies never;
  }
}

const ageText = (age: number | null): string => (age === null ? "three intervals" : formatDuration(age));

const stateText = (state: SampledState): string =>
  [...state]
    .filter(([{ name }]) => name !== "now")
    .map(([{ name, type }, value]) => {
      if (type === "timestamp") return `${name} ${formatDuration(SAMPLE_NOW - Number(value))} ago`;
      return `${name} = ${typeof value === "number" ? Number(value.toPrecision(6)) : value}`;
    })
    .join(", ");
