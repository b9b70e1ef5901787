import type { DurationMs } from "../../base/duration.ts";
import type { ChurnRates, Scenario } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, hashUnit, type Uint32 } from "../hash.ts";
import { addNode, type Population } from "../sessions/population.ts";
import { addNewNode, type Fleet, removeNode } from "./fleet.ts";
import { NEVER } from "./node.ts";

/** The schedule by which nodes join and leave the fleet. It depends only on the seed and the rates. */
export interface Churn {
  readonly seed: Uint32;
  readonly rates: ChurnRates;
  joinAt: EpochMs;
  leaveAt: EpochMs;
  /** Number of joins and leaves so far. */
  joins: number;
  leaves: number;
}

/** Hash keys that make the draws for different purposes independent. */
const DRAW_PURPOSES = { joinAt: 0x10b1, leaveAt: 0x10b2, leaver: 0x10b3 } as const;

/** Creates the churn of a scenario from `startMs` on. */
export function createChurn({ seed, churn: rates }: Scenario, startMs: EpochMs): Churn {
  const churn: Churn = { seed, rates, joinAt: NEVER, leaveAt: NEVER, joins: 0, leaves: 0 };
  churn.joinAt = startMs + drawDelay(rates.joinEveryMs, drawUnit(churn, DRAW_PURPOSES.joinAt, 0));
  churn.leaveAt = startMs + drawDelay(rates.leaveEveryMs, drawUnit(churn, DRAW_PURPOSES.leaveAt, 0));
  return churn;
}

/** Returns when the next node joins or leaves, or Infinity if none does. */
export const nextChurnEvent = ({ joinAt, leaveAt }: Churn): EpochMs => Math.min(joinAt, leaveAt);

/** Executes the next join or leave at its time. */
export function runChurnEvent(churn: Churn, fleet: Fleet, population: Population): void {
  const at = nextChurnEvent(churn);
  if (at === churn.joinAt) {
    churn.joins += 1;
    churn.joinAt = at + drawDelay(churn.rates.joinEveryMs, drawUnit(churn, DRAW_PURPOSES.joinAt, churn.joins));
    addNode(population);
    addNewNode(fleet, at);
    return;
  }
  churn.leaves += 1;
  churn.leaveAt = at + drawDelay(churn.rates.leaveEveryMs, drawUnit(churn, DRAW_PURPOSES.leaveAt, churn.leaves));
  const leaver = fleet.nodes[Math.floor(drawUnit(churn, DRAW_PURPOSES.leaver, churn.leaves) * fleet.nodes.length)];
  if (leaver !== undefined) removeNode(fleet, leaver, at, NEVER);
}

const drawDelay = (meanMs: DurationMs, unit: number): DurationMs => Math.max(1, Math.ceil(exponential(meanMs, unit)));

const drawUnit = ({ seed }: Churn, purpose: Uint32, count: number): number => hashUnit(seed ^ purpose, count);
