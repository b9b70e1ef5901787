import type { NodeId } from "../../model/node.ts";
import { isoAt } from "../../model/time.ts";
import { seconds, secondsOf } from "../../web/api/json-values.ts";
import { countNoun, formatDuration } from "../../web/ui/page/format.ts";
import type { BacktestResult } from "../backtest/backtest.ts";
import type { ReplayedAction, ReplayOutcome } from "../backtest/policy-replay.ts";
import { alignColumns, formatLength, formatTime, nodeLabel, type Paint, stripControlCharacters } from "./text.ts";

/** The report of a backtest, as `--output json` prints it. */
export type BacktestReport = ReturnType<typeof backtestReport>;
/** What the policies in force, or the candidates, would have done. */
type OutcomeReport = BacktestReport["in_force"];

/** Returns the report of a backtest. */
export function backtestReport(result: BacktestResult) {
  const { grid, size, gaps, names, inForce, candidate } = result;
  const { startMs, stepMs, points } = grid;
  return {
    history: {
      from: isoAt(startMs),
      until: isoAt(startMs + (points - 1) * stepMs),
      resolution_seconds: secondsOf(result.resolutionMs),
      walk_interval_seconds: seconds(size.walkIntervalMs),
      nodes: size.nodes,
      daemons: size.daemons,
      gaps: gaps.map(({ fromMs, untilMs }) => ({ from: isoAt(fromMs), until: isoAt(untilMs) })),
      missing_fields: result.missingFields,
      too_short: tooShort(result),
    },
    in_force: outcomeReport(inForce, names),
    candidate: candidate === null ? null : outcomeReport(candidate, names),
    difference: candidate === null ? null : differenceReport(inForce, candidate, names),
  };
}

function outcomeReport(outcome: ReplayOutcome, names: BacktestResult["names"]) {
  const { policies, actions } = outcome;
  return {
    policies: policies.map(({ name, mode }) => {
      const own = actions.filter(({ policy }) => policy === name);
      return {
        policy: name,
        mode,
        actions: countBy(own, ({ action }) => action),
        nodes: new Set(own.map(({ node }) => node)).size,
        days: countBy(own, ({ at }) => dayOf(at)),
        held: outcome.holdsOf(name),
      };
    }),
    nodes: nodesOf(actions, names),
    actions: actions.map(({ at, node, ...action }) => ({
      at: isoAt(at),
      node,
      name: names.get(node) ?? null,
      ...action,
    })),
  };
}

/** Counts the actions on each node, the largest number first. */
function nodesOf(actions: readonly ReplayedAction[], names: BacktestResult["names"]) {
  return [...Map.groupBy(actions, ({ node }) => node)]
    .map(([node, own]) => ({
      node,
      name: names.get(node) ?? null,
      total: own.length,
      actions: countBy(own, ({ policy, action }) => `${policy}: ${action}`),
    }))
    .toSorted((a, b) => b.total - a.total);
}

function differenceReport(inForce: ReplayOutcome, candidate: ReplayOutcome, names: BacktestResult["names"]) {
  const policies = [...new Set([...inForce.policies, ...candidate.policies].map(({ name }) => name))];
  const countOf = ({ actions }: ReplayOutcome, name: string) => actions.filter(({ policy }) => policy === name).length;
  const nodesIn = ({ actions }: ReplayOutcome) => new Set(actions.map(({ node }) => node));
  const [before, after] = [nodesIn(inForce), nodesIn(candidate)];
  const onlyIn = (nodes: ReadonlySet<NodeId>, others: ReadonlySet<NodeId>) =>
    [...nodes].filter((node) => !others.has(node)).map((node) => ({ node, name: names.get(node) ?? null }));
  return {
    policies: policies.map((policy) => ({
      policy,
      in_force: countOf(inForce, policy),
      candidate: countOf(candidate, policy),
    })),
    newly_acted_on: onlyIn(after, before),
    no_longer_acted_on: onlyIn(before, after),
  };
}

/** Returns the keys of policies whose durations are shorter than the resolution of the history. */
function tooShort({ resolutionMs, inForce, candidate }: BacktestResult) {
  const found = [...inForce.policies, ...(candidate?.policies ?? [])].flatMap(
    ({ name: policy, forMs, clearForMs, maxAgeMs, steps }) => {
      const durations = [
        ["for", forMs],
        ["clear_for", clearForMs],
        ["max_age", maxAgeMs],
        ...steps.map((step) => ["verify.within", step.action === "notify" ? null : step.verify.withinMs] as const),
      ] as const;
      const keys = durations.flatMap(([key, ms]) => (ms !== null && ms > 0 && ms < resolutionMs ? [key] : []));
      return keys.map((key) => ({ policy, key }));
    },
  );
  return [...new Map(found.map((row) => [`${row.policy} ${row.key}`, row])).values()];
}

const dayOf = (at: number): string => isoAt(at).slice(0, 10);

function countBy<T>(rows: readonly T[], keyOf: (row: T) => string): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(rows, keyOf)].map(([key, own]) => [key, own.length]));
}

/** Maximum number of nodes in each list of the text. JSON has all of them. */
const LISTED_MAX = 10;

/** How any replay may differ from what the daemon would have done. */
const LIMITS_OF_REPLAY = [
  "every policy is replayed as if it acted, whatever its mode; approvals, canaries and efficacy are left out",
  "an open circuit breaker closes again after safety.breaker.within, as in a dry run: the real one holds all actions until reset-breaker",
  "operator commands, such as pauses, holds, reset-breaker and accept-inventory, are unknown",
  "the history shows the fleet as it was, with the actions that were taken then: how a node would have responded to other actions is unknown",
  "blocked_by alerts are those that Prometheus fired; silences are unknown",
];

const SHORTER_THAN_RESOLUTION =
  "is shorter than the resolution; use a smaller --step if the history is detailed enough";
const NO_CANDIDATE = "no candidate was compared: pass --policies FILE";

/** Formats the report of a backtest. */
export function formatBacktest(report: BacktestReport, paint: Paint): string {
  const { history, in_force, candidate, difference } = report;
  const blocks = [
    historyLines(history, paint),
    ...outcomeBlocks(candidate === null ? "" : "in force: ", in_force, paint),
    ...(candidate === null ? [] : outcomeBlocks("candidate: ", candidate, paint)),
    difference === null ? [NO_CANDIDATE] : differenceLines(difference, paint),
  ];
  return `${blocks.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function historyLines(history: BacktestReport["history"], paint: Paint): readonly string[] {
  const { from, until, gaps, missing_fields: missing, too_short: tooShort } = history;
  const walks = history.walk_interval_seconds;
  const longest = gaps.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0];
  return [
    paint("title", `history from ${formatTime(from)} to ${formatTime(until)}`),
    `  ${countNoun(history.nodes, "node")}; resolution ${formatDuration(history.resolution_seconds)}: shorter events may be missed, and times are accurate only to this resolution`,
    walks === null
      ? "  the daemon's own metrics are not in the history: every point counts as a complete walk of the node list"
      : `  the node list was read every ${formatDuration(walks)}`,
    ...(history.daemons < 2 ? [] : [paint("warning", `  ${severalDaemons(history.daemons)}`)]),
    longest === undefined
      ? "  no gaps"
      : `  ${countNoun(gaps.length, "gap")}, ${formatLength(sum(gaps.map(lengthOf)))} in total; the longest from ${formatTime(longest.from)} to ${formatTime(longest.until)}`,
    ...missing.map(({ read_by, field, why }) =>
      paint("warning", stripControlCharacters(`  ${read_by}: ${field} is unknown: ${why}`)),
    ),
    ...tooShort.map(({ policy, key }) => paint("warning", `  ${policy}: ${key} ${SHORTER_THAN_RESOLUTION}`)),
    ...LIMITS_OF_REPLAY.map((line) => `  ${line}`),
  ];
}

const severalDaemons = (daemons: number): string =>
  `${daemons} daemons are in the history at the same time, and their nodes count as one fleet: select one with --matchers, such as --matchers 'instance="HOST:PORT"'`;

const lengthOf = ({ from, until }: { readonly from: string; readonly until: string }): number =>
  Date.parse(until) - Date.parse(from);

function outcomeBlocks(prefix: string, outcome: OutcomeReport, paint: Paint): readonly (readonly string[])[] {
  const title = (text: string) => paint("title", `${prefix}${text}`);
  return [
    [title("actions by day (UTC)"), ...dayTable(outcome)],
    [title("held by safety"), ...holdLines(outcome)],
    [title("most affected nodes"), ...nodeLines(outcome)],
  ];
}

function dayTable({ policies }: OutcomeReport): readonly string[] {
  const acting = policies.filter(({ days }) => Object.keys(days).length > 0);
  if (acting.length === 0) return ["  no policy would have acted"];
  const days = [...new Set(acting.flatMap((policy) => Object.keys(policy.days)))].toSorted();
  const total = ["total", ...acting.map(({ days }) => String(sum(Object.values(days))))];
  const nodes = ["nodes", ...acting.map(({ nodes }) => String(nodes))];
  const rows = days.map((day) => [day, ...acting.map((policy) => String(policy.days[day] ?? 0))]);
  const kinds = acting.map(({ policy, actions }) => `  ${policy}: ${countsText(actions)}`);
  const table = alignColumns([["day", ...acting.map(({ policy }) => policy)], ...rows, total, nodes], 1);
  return [...table.map((line) => `  ${line}`), ...kinds].map(stripControlCharacters);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} × ${name}`)
    .join(", ");

function holdLines({ policies }: OutcomeReport): readonly string[] {
  const held = policies.filter(({ held }) => held.length > 0);
  if (held.length === 0) return ["  no node was held"];
  return held
    .flatMap(({ policy, held }) => [
      `  ${policy}`,
      ...held.map(
        ({ reason, times, nodes, example }) =>
          `    ${reason}: ${countNoun(nodes, "node")}, ${times === 1 ? "once" : `${times} times`}; first: ${example}`,
      ),
    ])
    .map(stripControlCharacters);
}

function nodeLines({ nodes }: OutcomeReport): readonly string[] {
  if (nodes.length === 0) return ["  none"];
  const rows = nodes.slice(0, LISTED_MAX).map((row) => [nodeLabel(row.node, row.name), countsText(row.actions)]);
  const rest = nodes.length > LISTED_MAX ? [`  and ${nodes.length - LISTED_MAX} more: see --output json`] : [];
  return [...alignColumns(rows, 2).map((line) => `  ${stripControlCharacters(line)}`), ...rest];
}

type NamedNode = { readonly node: string; readonly name: string | null };

function differenceLines(difference: NonNullable<BacktestReport["difference"]>, paint: Paint): readonly string[] {
  const { policies, newly_acted_on: newly, no_longer_acted_on: noLonger } = difference;
  const rows = policies.map(({ policy, in_force: before, candidate: after }) => [
    policy,
    String(before),
    String(after),
    `${after > before ? "+" : ""}${after - before}`,
  ]);
  const table = alignColumns([["policy", "in force", "candidate", "difference"], ...rows], 1);
  return [
    paint("title", "difference"),
    ...table.map((line) => `  ${stripControlCharacters(line)}`),
    `  newly acted on: ${listText(newly)}`,
    `  no longer acted on: ${listText(noLonger)}`,
  ];
}

function listText(nodes: readonly NamedNode[]): string {
  if (nodes.length === 0) return "no node";
  const listed = nodes.slice(0, LISTED_MAX).map(({ node, name }) => nodeLabel(node, name));
  const rest = nodes.length > LISTED_MAX ? [`and ${nodes.length - LISTED_MAX} more`] : [];
  return stripControlCharacters([...listed, ...rest].join(", "));
}
