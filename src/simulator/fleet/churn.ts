import type { DurationMs } from "../../base/duration.ts";
import type { ChurnRates, Scenario } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { admitNode, type Fleet, removeNode } from "./fleet.ts";
import { exponential, hashUnit, type Word } from "../hash.ts";
import { NEVER } from "./node.ts";
import { addNode, type Population } from "../sessions/population.ts";

/** When nodes next join and leave the fleet. It follows from the seed and the rates, whatever else happens. */
export interface Churn {
  readonly seed: Word;
  readonly rates: ChurnRates;
  joinAt: EpochMs;
  leaveAt: EpochMs;
  /** Joins and leaves so far. */
  joins: number;
  leaves: number;
}

/** What a number is drawn for. */
const DRAWS = { joinAt: 0x10b1, leaveAt: 0x10b2, leaver: 0x10b3 } as const;

/** The churn of a scenario, from `startMs` on. */
export function createChurn({ seed, churn: rates }: Scenario, startMs: EpochMs): Churn {
  const churn: Churn = { seed, rates, joinAt: NEVER, leaveAt: NEVER, joins: 0, leaves: 0 };
  churn.joinAt = startMs + wait(rates.joinEveryMs, draw(churn, DRAWS.joinAt, 0));
  churn.leaveAt = startMs + wait(rates.leaveEveryMs, draw(churn, DRAWS.leaveAt, 0));
  return churn;
}

/** When the next node joins or leaves; Infinity: never. */
export const nextChurnEvent = ({ joinAt, leaveAt }: Churn): EpochMs => Math.min(joinAt, leaveAt);

/** Lets the next node join or leave, at its time. */
export function runChurnEvent(churn: Churn, fleet: Fleet, population: Population): void {
  const at = nextChurnEvent(churn);
  if (at === churn.joinAt) {
    churn.joins += 1;
    churn.joinAt = at + wait(churn.rates.joinEveryMs, draw(churn, DRAWS.joinAt, churn.joins));
    addNode(population);
    admitNode(fleet, at);
    return;
  }
  churn.leaves += 1;
  churn.leaveAt = at + wait(churn.rates.leaveEveryMs, draw(churn, DRAWS.leaveAt, churn.leaves));
  const leaver = fleet.nodes[Math.floor(draw(churn, DRAWS.leaver, churn.leaves) * fleet.nodes.length)];
  if (leaver !== undefined) removeNode(fleet, leaver, at, NEVER);
}

const wait = (meanMs: DurationMs, unit: number): DurationMs => Math.max(1, Math.ceil(exponential(meanMs, unit)));

const draw = ({ seed }: Churn, what: Word, count: number): number => hashUnit(seed ^ what, count);
