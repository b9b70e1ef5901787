import { formatDuration } from "../base/duration.ts";
import { onOneLine } from "../base/text.ts";
import type { PolicySpec, Step } from "../config/schema/policy.ts";
import { type ExternalBlocker, MODES } from "../model/policy/policy.ts";
import { actionName } from "../model/remediation/episode.ts";
import { formatTime } from "../model/time.ts";
import { compilePolicy, type Policy } from "./policy.ts";
import { constantTimes, isTrueIn, SAMPLE_NOW, type SampledState, sampleStates } from "./policy-diff-samples.ts";

/** One difference between two versions of a policy. */
export interface PolicyDifference {
  readonly policy: string;
  /** The key that differs; `policy` means the whole policy. */
  readonly key: string;
  /**
   * `more` if the policy may act on more nodes, or sooner; `less` if on fewer, or later; `other` if neither is certain.
   */
  readonly effect: "more" | "less" | "other";
  readonly text: string;
}

type Effect = PolicyDifference["effect"];

/** A difference without the name of its policy. */
type KeyDifference = Omit<PolicyDifference, "policy">;

/** Returns how new policies differ from the ones that they replace. */
export function comparePolicies(
  before: readonly PolicySpec[],
  after: readonly PolicySpec[],
): readonly PolicyDifference[] {
  const old = new Map(before.map((spec) => [spec.name, spec]));
  const names = new Set(after.map(({ name }) => name));
  const removed = before.filter(({ name }) => !names.has(name));
  return [
    ...after.flatMap((spec) => {
      const was = old.get(spec.name);
      if (was === undefined) return [describePresence(spec, "more", "new")];
      return comparePolicy(was, spec).map((difference) => ({ policy: spec.name, ...difference }));
    }),
    ...removed.map((spec) => describePresence(spec, "less", "removed")),
    ...compareOrder(before, after),
  ];
}

/**
 * Describes a policy that was added or removed. In dry_run, or with notify steps only, a policy acts on no node whether
 * or not it exists.
 */
const describePresence = (spec: PolicySpec, effect: Effect, change: string): PolicyDifference => ({
  policy: spec.name,
  key: "policy",
  effect: spec.mode !== "dry_run" && spec.steps.some(({ action }) => action !== "notify") ? effect : "other",
  text: `${change}: ${spec.mode}, ${stepsText(spec.steps)}, when ${onOneLine(spec.when)}`,
});

const comparePolicy = (was: PolicySpec, is: PolicySpec): readonly KeyDifference[] => [
  ...NUMBERS.flatMap((row) => compareNumber(row, was, is)),
  ...compareSelection(was, is),
  ...compareMaxAge(was.maxAgeMs, is.maxAgeMs),
  ...compareSteps(was.steps, is.steps),
  ...compareWindows(was.windows, is.windows),
  ...compareLists("blocked_by", was.blockedBy.map(blockerText), is.blockedBy.map(blockerText), "less"),
];

/** A key with a number, and the effect of a larger number. */
interface NumberRow {
  readonly key: string;
  readonly ifLarger: Effect;
  read(spec: PolicySpec): number;
  format(value: number): string;
}

const durationRow = (key: string, read: NumberRow["read"], ifLarger: Effect = "less"): NumberRow => {
  return { key, ifLarger, read, format: formatDuration };
};

const NUMBERS: readonly NumberRow[] = [
  { key: "mode", ifLarger: "more", read: ({ mode }) => MODES.indexOf(mode), format: (index) => MODES[index]! },
  durationRow("for", ({ forMs }) => forMs),
  // With a longer one, a node that fails again before a step was taken is acted on without another `for`, but its next
  // episode is later.
  durationRow("clear_for", ({ clearForMs }) => clearForMs, "other"),
  { key: "retry.episodes", ifLarger: "more", read: ({ retry }) => retry.episodes, format: String },
  durationRow("retry.every", ({ retry }) => retry.everyMs),
  durationRow("retry.forget_after", ({ retry }) => retry.forgetAfterMs),
];

function compareNumber({ key, ifLarger, read, format }: NumberRow, was: PolicySpec, is: PolicySpec): KeyDifference[] {
  const [from, to] = [read(was), read(is)];
  if (from === to) return [];
  return [{ key, effect: to > from ? ifLarger : OPPOSITE[ifLarger], text: `${format(to)}, was ${format(from)}` }];
}

const OPPOSITE: Readonly<Record<Effect, Effect>> = { more: "less", less: "more", other: "other" };

/** Compares which nodes two versions select, with an example of a node that only one of them selects. */
function compareSelection(was: PolicySpec, is: PolicySpec): KeyDifference[] {
  if (was.match === is.match && was.when === is.when) return [];
  const key = was.when === is.when ? "match" : was.match === is.match ? "when" : "match and when";
  const [before, after] = [compilePolicy(was), compilePolicy(is)];
  const expressions = [before.match, before.when, after.match, after.when].filter((expression) => expression !== null);
  const states = [...sampleStates(expressions)];
  const stateText = (state: SampledState) => describeState(state, constantTimes(expressions).length > 0);
  const added = states.find((state) => selects(after, state) && !selects(before, state));
  const removed = states.find((state) => selects(before, state) && !selects(after, state));
  const found: KeyDifference[] = [];
  if (added !== undefined) found.push({ key, effect: "more", text: `newly matched: ${stateText(added)}` });
  if (removed !== undefined) found.push({ key, effect: "less", text: `no longer matched: ${stateText(removed)}` });
  if (found.length > 0) return found;
  const text = "changed text; no sampled node is matched by only one of the two versions";
  return [{ key, effect: "other", text }];
}

const selects = ({ match, when }: Policy, state: SampledState): boolean =>
  (match === null || isTrueIn(match, state)) && isTrueIn(when, state);

const compareMaxAge = (was: number | null, is: number | null): KeyDifference[] =>
  was === is ? [] : [{ key: "max_age", effect: "other", text: `${ageText(is)}, was ${ageText(was)}` }];

const ageText = (age: number | null): string => (age === null ? "three intervals" : formatDuration(age));

function compareSteps(was: readonly Step[], is: readonly Step[]): KeyDifference[] {
  if (toJson(was) === toJson(is)) return [];
  const found = compareLists("steps", was.map(stepText), is.map(stepText), "more");
  if (found.length > 0) return found;
  const text = `${stepsText(is)}, was ${stepsText(was)}: order, number or verification`;
  return [{ key: "steps", effect: "other", text }];
}

const blockerText = (blocker: ExternalBlocker): string =>
  blocker.kind === "query" ? `query ${blocker.query}` : `alerts ${blocker.matchers.join(", ")}`;

/** Compares windows. A policy without windows may act at any time. */
function compareWindows(was: readonly string[], is: readonly string[]): KeyDifference[] {
  if ((was.length === 0) === (is.length === 0)) return compareLists("windows", was, is, "more");
  const windowsText = (names: readonly string[]) => names.join(", ") || "always";
  const effect = is.length === 0 ? "more" : "less";
  return [{ key: "windows", effect, text: `${windowsText(is)}, was ${windowsText(was)}` }];
}

/** Compares two lists regardless of order and repetition. */
function compareLists(key: string, was: readonly string[], is: readonly string[], ifAdded: Effect): KeyDifference[] {
  const added = [...new Set(is)].filter((value) => !was.includes(value));
  const removed = [...new Set(was)].filter((value) => !is.includes(value));
  return [
    ...added.map((value) => ({ key, effect: ifAdded, text: `newly ${onOneLine(value)}` })),
    ...removed.map((value) => ({ key, effect: OPPOSITE[ifAdded], text: `no longer ${onOneLine(value)}` })),
  ];
}

/**
 * Compares the order. The first policy that fires acts on the node, so another order may change which policy that is.
 */
function compareOrder(before: readonly PolicySpec[], after: readonly PolicySpec[]): readonly PolicyDifference[] {
  const sharedNames = (policies: readonly PolicySpec[], others: readonly PolicySpec[]) =>
    policies.map(({ name }) => name).filter((name) => others.some((other) => other.name === name));
  const [was, is] = [sharedNames(before, after), sharedNames(after, before)];
  const first = is.find((name, index) => was[index] !== name);
  if (first === undefined) return [];
  return [{ policy: first, key: "order", effect: "other", text: `now ${is.join(", ")}; was ${was.join(", ")}` }];
}

const toJson = (value: unknown): string => JSON.stringify(value);

const stepsText = (steps: readonly Step[]): string => steps.map(stepText).join(", ");

function stepText(step: Step): string {
  if (step.action === "notify") return `notify ${step.receiver}`;
  if (step.action === "quarantine") return `quarantine ${formatDuration(step.durationMs)}`;
  return step.action === "reboot" ? actionName({ kind: "reboot", force: step.force }) : step.action;
}

/** Describes a state with its times, or else with their ages. */
const describeState = (state: SampledState, hasTimes: boolean): string =>
  [...state]
    .filter(([{ name }]) => name !== "now" || hasTimes)
    .map(([{ name, type }, value]) => {
      if (type === "timestamp" && hasTimes) return `${name} = ${formatTime(Number(value))}`;
      if (type === "timestamp") return `${name} ${formatDuration(SAMPLE_NOW - Number(value))} ago`;
      return `${name} = ${typeof value === "number" ? Number(value.toPrecision(6)) : value}`;
    })
    .join(", ");
