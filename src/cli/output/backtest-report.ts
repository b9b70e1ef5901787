import type { NodeId } from "../../model/node.ts";
import { isoAt } from "../../model/time.ts";
import { seconds, secondsOf } from "../../web/api/notation.ts";
import type { BacktestResult } from "../backtest/backtest.ts";
import type { ReplayedAction, ReplayOutcome } from "../backtest/outcome.ts";

/** The report of a backtest, as JSON prints it. */
export type BacktestReport = ReturnType<typeof backtestReport>;
/** What one set of policies would have done. */
export type OutcomeReport = BacktestReport["in_force"];

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
  const { rules, actions } = outcome;
  return {
    policies: rules.map(({ name, mode }) => {
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
      ...{ at: isoAt(at), node, name: names.get(node) ?? null },
      ...action,
    })),
  };
}

/** Counts the actions on each node, most first. */
function nodesOf(actions: readonly ReplayedAction[], names: BacktestResult["names"]) {
  return [...Map.groupBy(actions, ({ node }) => node)]
    .map(([node, own]) => ({
      ...{ node, name: names.get(node) ?? null, total: own.length },
      actions: countBy(own, ({ policy, action }) => `${policy}: ${action}`),
    }))
    .toSorted((a, b) => b.total - a.total);
}

function differenceReport(inForce: ReplayOutcome, candidate: ReplayOutcome, names: BacktestResult["names"]) {
  const policies = [...new Set([...inForce.rules, ...candidate.rules].map(({ name }) => name))];
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
  const found = [...inForce.rules, ...(candidate?.rules ?? [])].flatMap(
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
