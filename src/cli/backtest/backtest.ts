import type { IntegrationClient } from "../../api-client/integration-client.ts";
import { DAY_MS, type DurationMs, formatDuration, MINUTE_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { NODE_STATUS } from "../../metrics/families/node-families.ts";
import { FAILURE_DOMAINS, type NodeId, type NodeLabel, type PerFailureDomain } from "../../model/node.ts";
import type { ExternalBlockers } from "../../model/ports.ts";
import type { EpochMs } from "../../model/time.ts";
import { nextTurn } from "../../platform/event-loop.ts";
import type { Expression } from "../../policy/cel/expression.ts";
import { type Field, findField } from "../../policy/cel/fields.ts";
import { configuredExpressions, expressionsOf } from "../../policy/policy.ts";
import type { RemediationConfig } from "../../remediation/context.ts";
import { queryHasResult } from "../../remediation/evaluation/external-blockers.ts";
import type { HistoryChunk, TimeGrid } from "./history-chunk.ts";
import { type HistorySize, type HistorySource, measureHistory, readHistory } from "./history-reader.ts";
import { familiesOf, missingFieldReason } from "./history-sources.ts";
import { createReplayClock, type ReplayClock, type ReplayOutcome, startPolicyReplay } from "./policy-replay.ts";
import { LOOKBACK_MS, ReplayedFleet } from "./replayed-fleet.ts";

/** What a backtest replays. */
interface BacktestRequest extends HistorySource {
  /** Time between two points of the history, or null to choose it by the size of the history. */
  readonly stepMs: DurationMs | null;
  readonly inForce: RemediationConfig;
  /** Policies to compare with those in force, or null if there are none. */
  readonly candidate: RemediationConfig | null;
}

/** A field that decisions depend on but the history does not contain. */
interface MissingField {
  /** Name of the policy, or the key of `safety`. */
  readonly read_by: string;
  readonly field: string;
  readonly why: string;
}

/** What a backtest found, and what it is based on. */
export interface BacktestResult {
  readonly grid: TimeGrid;
  readonly size: HistorySize;
  /** The step of the grid, or a longer scrape interval. */
  readonly resolutionMs: DurationMs;
  /** Times without history, in order. */
  readonly gaps: readonly { readonly fromMs: EpochMs; readonly untilMs: EpochMs }[];
  readonly missingFields: readonly MissingField[];
  readonly names: ReadonlyMap<NodeId, string>;
  readonly inForce: ReplayOutcome;
  readonly candidate: ReplayOutcome | null;
}

/** Possible times between two points. The first one that fits the history is chosen, or else a day. */
const STEPS_MS: readonly DurationMs[] = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720].map((minutes) => minutes * MINUTE_MS);
/**
 * Maximum number of observations of single nodes that are replayed unless a step is given. They take about ten minutes.
 */
const OBSERVATIONS_MAX = 50_000_000;

/**
 * Replays the history in Prometheus against the policies. `onProgress` receives the share that is done, 0 to 1. Fails if
 * the history has no nodes at the points that are read, a query fails, or the signal aborts.
 */
export async function runBacktest(
  request: BacktestRequest,
  onProgress: (share: number) => void,
): Promise<Result<BacktestResult, string>> {
  const { prometheus, fromMs, untilMs, inForce, candidate, signal } = request;
  const size = await measureHistory(request);
  if (!size.ok) return size;
  const stepMs = request.stepMs ?? fittingStep(size.value, untilMs - fromMs);
  // No multiple of a long step may lie in a short history.
  const startMs = Math.min(Math.ceil(fromMs / stepMs) * stepMs, untilMs);
  const grid: TimeGrid = { startMs, stepMs, points: Math.floor((untilMs - startMs) / stepMs) + 1 };
  const configs = candidate === null ? [inForce] : [inForce, candidate];
  const clock = createReplayClock(startMs);
  const fleet = new ReplayedFleet(startMs);
  const found = new FoundHistory();
  const shared = { clock, inventory: fleet.inventory, externalBlockers: pastBlockers(prometheus, clock) };
  const replays = await Promise.all(configs.map((config) => startPolicyReplay({ ...shared, config })));
  const families = familiesOf(configs.flatMap(({ policies, safety }) => configuredExpressions(policies, safety)));
  try {
    for await (const chunk of readHistory(request, grid, size.value.nodes, families)) {
      if (!chunk.ok) return chunk;
      const { startMs: firstMs, points } = chunk.value.grid;
      for (let point = 0; point < points; point++) {
        const atMs = firstMs + point * stepMs;
        clock.set(atMs);
        const seen = fleet.advance(chunk.value, point);
        if (seen.length === 0) found.addGap(atMs, Math.min(atMs + stepMs, untilMs));
        for (const observation of seen) for (const replay of replays) await replay.run(observation);
        // Rounds yield to the event loop by their clock, which does not advance, and a chunk may take seconds.
        await nextTurn();
        if (signal.aborted) return fail("stopped");
      }
      found.addChunk(chunk.value);
      onProgress((firstMs - startMs + points * stepMs) / (grid.points * stepMs));
    }
  } finally {
    for (const replay of replays) replay.close();
  }
  if (!found.families.has(NODE_STATUS.name)) return fail(noNodesMessage(stepMs));
  return ok({
    grid,
    size: size.value,
    resolutionMs: fleet.resolutionMs({ grid }),
    gaps: found.gaps(),
    missingFields: missingFields(configs, found),
    names: fleet.names,
    inForce: replays[0]!.outcome,
    candidate: replays[1]?.outcome ?? null,
  });
}

const noNodesMessage = (stepMs: DurationMs): string =>
  `Prometheus has samples of ${NODE_STATUS.name} in this time, but none at the points that were read, which are ${formatDuration(stepMs)} apart; narrow --since and --until, or use a smaller --step`;

function fittingStep({ nodes, walkIntervalMs }: HistorySize, durationMs: DurationMs): DurationMs {
  const fits = (stepMs: DurationMs) =>
    stepMs >= (walkIntervalMs ?? 0) && (nodes * durationMs) / stepMs <= OBSERVATIONS_MAX;
  return STEPS_MS.find(fits) ?? DAY_MS;
}

/**
 * Creates external blockers that answer as of the time of the replay. Alerts are those that Prometheus evaluated, because
 * Alertmanager keeps no history.
 */
const pastBlockers = (prometheus: IntegrationClient, clock: ReplayClock): ExternalBlockers => ({
  blocks(blockedBy, signal) {
    const query =
      blockedBy.kind === "query"
        ? blockedBy.query
        : `ALERTS{${['alertstate="firing"', ...blockedBy.matchers.map(quoteValue)].join(",")}}`;
    return queryHasResult(prometheus, query, signal, clock.now());
  },
});

/** Quotes the value of an Alertmanager matcher, which may lack quotes there, but not in PromQL. */
const quoteValue = (matcher: string): string =>
  matcher.replace(/(=~|!~|!=|=)\s*([^\s"]+)\s*$/, (_, operator, value) => `${operator}${JSON.stringify(value)}`);

/** Collects which families and labels the history contains, and when it contains nothing. */
class FoundHistory {
  readonly families = new Set<string>();
  readonly labels = new Set<NodeLabel>();
  readonly #gaps: { readonly fromMs: EpochMs; untilMs: EpochMs }[] = [];

  /** Adds a time in which the history shows nothing new. */
  addGap(fromMs: EpochMs, untilMs: EpochMs): void {
    const last = this.#gaps.at(-1);
    if (last?.untilMs === fromMs) last.untilMs = untilMs;
    else this.#gaps.push({ fromMs, untilMs });
  }

  addChunk(chunk: HistoryChunk): void {
    for (const family of chunk.families) this.families.add(family);
    for (const label of chunk.labels) this.labels.add(label);
  }

  /** Returns the times without history, except for those that may lie between two scrapes. */
  gaps(): BacktestResult["gaps"] {
    return this.#gaps.filter(({ fromMs, untilMs }) => untilMs - fromMs >= LOOKBACK_MS);
  }
}

function missingFields(
  configs: readonly RemediationConfig[],
  { families, labels }: FoundHistory,
): readonly MissingField[] {
  const { safety } = configs[0]!;
  const readers: readonly (readonly [readBy: string, fields: Iterable<Field>])[] = [
    ["safety.trust", [findField("node.last_seen")!]],
    ["safety.max_disrupted_per", domainFields(safety.maxDisruptedPer)],
    ["safety.min_online_per", domainFields(safety.minOnlinePer)],
    ["safety.correlated", [findField(`node.${safety.correlated.by}`)!]],
    ["safety.protected", fieldsOf(configuredExpressions([], safety))],
    ...configs.flatMap(({ policies }) => policies.map((spec) => [spec.name, fieldsOf(expressionsOf([spec]))] as const)),
  ];
  const missing = readers.flatMap(([read_by, fields]) =>
    [...fields].flatMap((field) => {
      const why = missingFieldReason(field, families, labels);
      return why === null ? [] : [{ read_by, field: field.name, why }];
    }),
  );
  // A policy in force and a candidate of the same name may read the same field.
  return [...new Map(missing.map((field) => [`${field.read_by} ${field.field}`, field])).values()];
}

const domainFields = (limits: PerFailureDomain): readonly Field[] =>
  FAILURE_DOMAINS.filter((domain) => limits[domain] !== null).map((domain) => findField(`node.${domain}`)!);

const fieldsOf = (expressions: readonly (Expression | null)[]): ReadonlySet<Field> =>
  new Set(expressions.flatMap((expression) => expression?.fields ?? []));
