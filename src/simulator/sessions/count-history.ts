import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { ServiceOptions } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { NEVER } from "../fleet/node.ts";
import type { GroupMask } from "./ordered-groups.ts";
import type { Population } from "./population.ts";
import { SESSION_STATES } from "./sessions.ts";

/** Lengths of both lists at one time. */
interface CountSample {
  readonly at: EpochMs;
  readonly nodes: number;
  /** Sessions by index of their state. */
  readonly sessions: readonly number[];
}

/** Recent lengths of the lists, for totals that lag. Nothing is sampled if no total lags. */
export interface CountHistory {
  readonly lagMsMax: DurationMs;
  /** When the next sample is due, or Infinity if never. */
  nextAt: EpochMs;
  /** Oldest first. The first is at least as old as the longest lag. */
  readonly samples: CountSample[];
}

const SAMPLE_INTERVAL_MS: DurationMs = SECOND_MS;

/** Creates a history that starts at `startMs`. */
export function createCountHistory({ nodeList, sessionList }: ServiceOptions, startMs: EpochMs): CountHistory {
  const lagMsMax = Math.max(nodeList.totalLagMs, sessionList.totalLagMs);
  return { lagMsMax, nextAt: lagMsMax === 0 ? NEVER : startMs, samples: [] };
}

/** Records the due sample. */
export function sampleCounts(history: CountHistory, fleet: Fleet, { sessions }: Population): void {
  const { samples, nextAt: at, lagMsMax } = history;
  samples.push({
    at,
    nodes: fleet.nodes.length,
    sessions: SESSION_STATES.map((_, state) => sessions.ordered.count(1 << state)),
  });
  if (samples[1] !== undefined && samples[1].at <= at - lagMsMax) samples.shift();
  history.nextAt = at + SAMPLE_INTERVAL_MS;
}

/** Returns the number of nodes at `at`, or in the oldest sample if that is later, or null if there are no samples. */
export const nodesAt = (history: CountHistory, at: EpochMs): number | null => sampleAt(history, at)?.nodes ?? null;

/**
 * Returns the number of sessions in some states at `at`, or in the oldest sample if that is later, or null if there are
 * no samples.
 */
export function sessionsAt(history: CountHistory, groups: GroupMask, at: EpochMs): number | null {
  const sample = sampleAt(history, at);
  if (sample === null) return null;
  return sample.sessions.reduce((sum, count, state) => sum + ((groups & (1 << state)) === 0 ? 0 : count), 0);
}

const sampleAt = ({ samples }: CountHistory, at: EpochMs): CountSample | null =>
  samples.findLast((sample) => sample.at <= at) ?? samples[0] ?? null;
