import { DAY_MS, formatDuration } from "../../base/duration.ts";
import { FAILURE_DOMAINS } from "../../model/node.ts";
import { MODES, type Mode, VERIFICATION_READ_MS_MIN } from "../../model/policy/policy.ts";
import { type IntervalSpec, matchesDay, type TimeInterval } from "../../model/policy/time-interval.ts";
import type { EpochMs } from "../../model/time.ts";
import type { ConfigChecks, ConfigSource, ExpressionUse } from "../checks.ts";
import { type PolicyFile, policiesInOrder } from "../policy-file.ts";
import { type Config, configSchema } from "../schema/config.ts";
import { kindOf, schemaAt } from "../schema/introspection.ts";
import type { PolicySpec } from "../schema/policy.ts";
import { type Marks, markKey, positionIn } from "../yaml/position.ts";
import type { ReadDocument } from "../yaml-reader.ts";
import { byPosition, type ConfigProblem, type Path, toProblem } from "./problem.ts";
import { SECRET_FOUND } from "./zod-issues.ts";

/** A warning about a valid file. */
export interface Warning {
  readonly path: Path;
  readonly found?: string;
  readonly expected: string;
  readonly message: string;
}

/** Returns the warnings about a valid configuration and its policies. */
export function findWarnings(
  main: ReadDocument<Config>,
  { checks, now }: Pick<ConfigSource, "checks" | "now">,
  policyFiles: readonly PolicyFile[],
): ConfigProblem[] {
  const { value: config, marks } = main;
  const own = [
    ...scaleWarnings(config),
    ...protectionWarnings(config, checks),
    ...secretWarnings(marks),
    ...limitWarnings(config),
    ...operatorWarnings(config, policiesInOrder(policyFiles)),
    ...config.time_intervals.flatMap((interval, index) => windowWarnings(interval, index, marks, now)),
  ];
  return [
    ...warningProblems(own, main),
    ...policyFiles.flatMap((file) => {
      const warnings = file.value.policies.flatMap((policy, index) =>
        policyWarnings(policy, config, checks).map((warning) => ({
          ...warning,
          path: ["policies", index, ...warning.path],
        })),
      );
      return warningProblems(warnings, file);
    }),
  ];
}

/** Adds the positions of warnings, and orders them by position. */
export const warningProblems = (
  warnings: readonly Warning[],
  { file, marks }: ReadDocument<unknown>,
): ConfigProblem[] =>
  warnings
    .map((warning) => toProblem(file, { found: "nothing", ...warning, ...positionIn(marks, warning.path) }))
    .toSorted(byPosition);

/** What to do about a scale that is not set. */
export const PROBE_HINT = "; check --probe shows which it is";

function scaleWarnings({ service }: Config): Warning[] {
  if (service.usage_scale !== undefined) return [];
  const message = `not set: CPU, memory and disk usage are not exported, and unknown in policies${PROBE_HINT}`;
  return [warning(["service", "usage_scale"], "must be ratio or percent, whichever the service uses", message)];
}

function protectionWarnings(config: Config, checks: ConfigChecks): Warning[] {
  const { protected: text } = config.safety;
  if (text === null) return [];
  const effect = "; no action is taken on a node whose protection depends on usage";
  return expressionWarnings(["safety", "protected"], text, config, checks, effect);
}

/** Returns what is known of an expression, which is nothing if it is invalid. */
function useOf(text: string, { expression }: ConfigChecks): ExpressionUse {
  const compiled = expression(text);
  return compiled.ok ? compiled.value : { fields: [], warnings: () => [] };
}

/**
 * Warns about mistakes in an expression and, if the usage scale is not set, about the usage that it reads. `effect` is
 * the end of the latter message.
 */
function expressionWarnings(path: Path, text: string, config: Config, checks: ConfigChecks, effect = ""): Warning[] {
  const { fields, warnings } = useOf(text, checks);
  const mistakes = warnings().map((message) => warning(path, "must hold for some nodes, but not for all", message));
  const usage = fields.filter(({ isUsage }) => isUsage).map(({ name }) => name);
  if (config.service.usage_scale !== undefined || usage.length === 0) return mistakes;
  const message = `reads ${usage.join(", ")}: unknown while service.usage_scale is not set${effect}`;
  return [...mistakes, warning(path, "must read known fields", message)];
}

function secretWarnings(marks: Marks): Warning[] {
  return [...marks.values()].flatMap((mark) => {
    const here = mark.kind === "scalar" ? schemaAt(configSchema, mark.path, undefined) : null;
    const secret = here === null ? undefined : kindOf(here)?.secret;
    if (secret === undefined || mark.variables.length > 0) return [];
    const message = `${secret} is written in plain text; take it from the environment, or name its file as ${mark.path.at(-1)}_file`;
    return [{ path: mark.path, found: SECRET_FOUND, expected: "must not be in the file", message }];
  });
}

/** Warns about limits that hold every action, and about limits without effect. */
function limitWarnings({ safety }: Config): Warning[] {
  const { trust, breaker } = safety;
  const noNodeAllowed: readonly (readonly [path: Path, limit: number | null])[] = [
    [["max_unhealthy", "percent"], safety.maxUnhealthy.share],
    [["max_disrupted", "percent"], safety.maxDisrupted.share],
    [["max_disrupted", "amount"], safety.maxDisrupted.amount],
    ...FAILURE_DOMAINS.map((domain) => [["max_disrupted_per", domain], safety.maxDisruptedPer[domain]] as const),
    [["max_in_flight"], safety.maxInFlight],
    [["max_actions", "amount"], safety.maxActions.amount],
    [["breaker"], Math.max(breaker.amount, breaker.share)],
  ];
  const withoutEffect: readonly (readonly [path: Path, isUnlimited: boolean, effect: string])[] = [
    [["trust", "min_inventory"], trust.minInventory === 0, "a walk that shows no node is trusted"],
    [["trust", "max_missing"], trust.maxMissing === 1, "a walk that misses every node is trusted"],
    [["trust", "max_unknown"], trust.maxUnknown === 1, "records that can't be read never make a walk untrusted"],
    [["max_unhealthy", "percent"], safety.maxUnhealthy.share === 1, "there is never a storm"],
  ];
  return [
    ...noNodeAllowed
      .filter(([, limit]) => limit === 0)
      .map(([path]) => warning(["safety", ...path], "must be more than 0", "is 0, so no action is taken")),
    ...withoutEffect
      .filter(([, isUnlimited]) => isUnlimited)
      .map(([path, , effect]) => warning(["safety", ...path], "must limit something", `limits nothing: ${effect}`)),
  ];
}

/** Creates a warning that does not quote a value. */
export const warning = (path: Path, expected: string, message: string): Warning => ({ path, expected, message });

/** Warns if policies act and no operator is configured who could pause them, approve actions and reset the breaker. */
function operatorWarnings({ web, safety }: Config, policies: readonly PolicySpec[]): Warning[] {
  const acts = policies.some(({ mode }) => modeRank(mode) > 0 && modeRank(safety.mode) > 0);
  if (!acts || web.admin_token_file !== undefined || web.operators.length > 0) return [];
  const message = "none, so no operator can pause the daemon, approve an action or reset the breaker";
  return [warning(["web", "operators"], "must name an operator", message)];
}

const modeRank = (mode: Mode): number => MODES.indexOf(mode);

/** Windows are checked for every day of a year: of their first year, of a leap year, or of the next twelve months. */
const LEAP_YEAR = 2028;
const DAYS_CHECKED = 366;
const DAY_MINUTES = 24 * 60;
const YEAR_MONTHS = 12;

/**
 * Warns about windows that are never open, or not any more, and about windows that close at midnight because no range
 * continues them.
 */
function windowWarnings({ intervals }: TimeInterval, index: number, marks: Marks, now: EpochMs): Warning[] {
  const path = ["time_intervals", index];
  if (intervals.length === 0) return [warning(path, "must have an interval", "has no interval, so it is never open")];
  const isNested = marks.has(markKey([...path, "time_intervals"]));
  const hasDays = intervals.every((spec) => dateWarnings(spec, path).length === 0);
  if (hasDays && intervals.every((spec) => hasEnded(spec, now))) {
    const message = "all of its days are in the past, so it is never open again";
    return [warning(path, "must have a day that is not in the past", message)];
  }
  return intervals.flatMap((spec, specIndex) => {
    const here = isNested ? [...path, "time_intervals", specIndex] : path;
    const { times, weekdays, daysOfMonth: days_of_month, months, years } = spec;
    const empty = Object.entries({ times, weekdays, days_of_month, months, years })
      .filter(([, list]) => list?.length === 0)
      .map(([key]) =>
        warning([...here, key], "must have a range", "is empty, so it is never open; leave it out to restrict nothing"),
      );
    const unmatched = empty.length > 0 ? empty : dateWarnings(spec, here);
    return [...unmatched, ...midnightWarnings(spec, intervals, here)];
  });
}

/** Returns whether all days of an interval are in the past, in every time zone. */
function hasEnded(spec: IntervalSpec, now: EpochMs): boolean {
  if (spec.years === undefined || spec.years.length === 0) return false;
  const yesterday = Math.floor(now / DAY_MS) - 1;
  const end = Date.UTC(Math.max(...spec.years.map((years) => years.end)) + 1, 0) / DAY_MS;
  // Also if the year is too large for a date.
  if (!(end <= yesterday + DAYS_CHECKED)) return false;
  for (let day = yesterday; day < end; day++) if (matchesDay(spec, day)) return false;
  return true;
}

/** Warns about months that don't exist, and about days that none of the months has. Alertmanager accepts both. */
function dateWarnings({ months, daysOfMonth }: IntervalSpec, path: Path): Warning[] {
  const noMonths = (months ?? []).flatMap(({ begin, end }, index) => {
    if (begin <= YEAR_MONTHS && end >= 1) return [];
    const message = "is not a month, so it matches nothing; months are from 1 to 12";
    return [warning([...path, "months", index], "must be from 1 to 12", message)];
  });
  if (noMonths.length > 0 || months === undefined || daysOfMonth === undefined) return noMonths;
  const first = Date.UTC(LEAP_YEAR, 0) / DAY_MS;
  for (let day = first; day < first + DAYS_CHECKED; day++) if (matchesDay({ months, daysOfMonth }, day)) return [];
  const message = "are not days of these months, so it is never open";
  return [warning([...path, "days_of_month"], "must be days of one of the months", message)];
}

/**
 * Warns about a range that ends at midnight and does not continue, which is often a night that was split incorrectly.
 */
function midnightWarnings(spec: IntervalSpec, specs: readonly IntervalSpec[], path: Path): Warning[] {
  const evening =
    spec.times?.findIndex(({ startMinute, endMinute }) => startMinute > 0 && endMinute === DAY_MINUTES) ?? -1;
  if (evening < 0) return [];
  const mornings = specs.filter(
    ({ location, times }) =>
      location === spec.location && (times?.some(({ startMinute }) => startMinute === 0) ?? true),
  );
  const first = Date.UTC(spec.years?.[0]?.begin ?? LEAP_YEAR, 0) / DAY_MS;
  for (let day = first; day < first + DAYS_CHECKED; day++) {
    if (!matchesDay(spec, day) || mornings.some((morning) => matchesDay(morning, day + 1))) continue;
    const date = new Date(day * DAY_MS);
    const weekday = date.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
    const message = `ends at midnight, and nothing continues it at 00:00 on the next day, for example after ${weekday}, ${date.toISOString().slice(0, 10)}; the hours after midnight need an interval of their own, with the days on which they fall`;
    return [warning([...path, "times", evening, "end_time"], "must be continued at 00:00", message)];
  }
  return [];
}

/** Returns the warnings about a policy, with paths relative to it. */
function policyWarnings(policy: PolicySpec, config: Config, checks: ConfigChecks): Warning[] {
  const warnings: Warning[] = [];
  const ceiling = config.safety.mode;
  if (modeRank(policy.mode) > modeRank(ceiling)) {
    const message = `${policy.mode} is above safety.mode, which limits it to ${ceiling}`;
    warnings.push(warning(["mode"], `must be at most ${ceiling}`, message));
  }
  if (policy.retry.episodes === 0) {
    warnings.push(warning(["retry", "episodes"], "must be more than 0", "is 0, so this policy acts on no node"));
  }
  return [
    ...warnings,
    ...expressionsOf(policy).flatMap(([path, text]) => expressionWarnings(path, text, config, checks)),
    ...contradictionWarnings(policy, checks),
    ...shortStepWarnings(policy),
  ];
}

/** Warns if no node can satisfy both `match` and `when`, although nothing is wrong with either of them alone. */
function contradictionWarnings({ match, when }: PolicySpec, checks: ConfigChecks): Warning[] {
  const warningsOf = (text: string) => useOf(text, checks).warnings();
  if (match === null || warningsOf(match).length > 0 || warningsOf(when).length > 0) return [];
  const expected = "must hold for some of the nodes that match selects";
  // A comment may end each of them.
  return warningsOf(`(${match}\n) && (${when}\n)`).map((message) =>
    warning(["when"], expected, message.replace("never holds", "never holds where match does")),
  );
}

/** Warns about steps that end before their node is read again. */
function shortStepWarnings({ steps }: PolicySpec): Warning[] {
  const first = formatDuration(VERIFICATION_READ_MS_MIN);
  return steps.flatMap((step, index) => {
    if (step.action === "notify" || step.verify.withinMs >= VERIFICATION_READ_MS_MIN) return [];
    const message = `is ${formatDuration(step.verify.withinMs)}, but apart from regular polling, a node is read again no earlier than ${first} after an action, so the step ends with the first read, whether or not it has had time to help`;
    return [warning(["steps", index, "verify", "within"], `must be at least ${first}`, message)];
  });
}

function expressionsOf({ match, when, steps }: PolicySpec): (readonly [path: Path, text: string])[] {
  const expects = steps.flatMap((step, index) => {
    const expect = step.action === "notify" ? null : step.verify.expect;
    return expect === null ? [] : [[["steps", index, "verify", "expect"], expect] as const];
  });
  return [...(match === null ? [] : [[["match"], match] as const]), [["when"], when], ...expects];
}
