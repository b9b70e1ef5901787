import type { Fault, Scenario } from "../model/scenario.ts";
import type { EpochMs } from "../model/time.ts";
import { type Churn, createChurn, nextChurnEvent, runChurnEvent } from "./fleet/churn.ts";
import { type CountHistory, createCountHistory, sampleCounts } from "./sessions/count-history.ts";
import { darkRegions, type FaultScript, nextDusk } from "./http/faults.ts";
import { createFleet, darken, type Fleet, runFleetEvent } from "./fleet/fleet.ts";
import type { Word } from "./hash.ts";
import { closeHour, createHours, type Hours } from "./sessions/hourly-statistics.ts";
import { createTraffic, cutSessions, nextTrafficEvent, runTrafficEvent, type Traffic } from "./sessions/traffic.ts";

/** The network behind the service: its nodes, its sessions and its past. Everything follows from the scenario. */
export interface World {
  readonly seed: Word;
  readonly startMs: EpochMs;
  readonly fleet: Fleet;
  readonly traffic: Traffic;
  readonly churn: Churn;
  readonly counts: CountHistory;
  readonly hours: Hours;
  readonly script: FaultScript;
  /** Up to when it has lived. */
  now: EpochMs;
  /** When a region goes dark or comes back. */
  duskAt: EpochMs;
}

/** The network as it is when the simulation starts. */
export function createWorld(scenario: Scenario, startMs: EpochMs): World {
  let traffic: Traffic | null = null;
  const fleet = createFleet(scenario, startMs, (node, at, parting) => {
    // In the fleet's life before the start there are no sessions to end.
    if (traffic !== null) cutSessions(traffic, node, at - startMs, parting);
  });
  traffic = createTraffic(scenario, startMs, fleet);
  const hours = createHours(scenario.seed, scenario.sessions, traffic.population, startMs);
  const script: FaultScript = { startMs, seed: scenario.seed, faults: [] };
  const world: World = {
    ...{ seed: scenario.seed, startMs, fleet, traffic, hours, script, now: startMs, duskAt: 0 },
    churn: createChurn(scenario, startMs),
    counts: createCountHistory(scenario.service, startMs),
  };
  replaceFaults(world, scenario.faults);
  return world;
}

/** Lets everything happen that is due by `to`, each thing at its own time. An earlier `to` than before changes nothing. */
export function advanceWorld(world: World, to: EpochMs): void {
  const { fleet, traffic, churn, counts, hours, startMs } = world;
  for (;;) {
    const trafficAt = startMs + nextTrafficEvent(traffic);
    const churnAt = nextChurnEvent(churn);
    const at = Math.min(trafficAt, fleet.agenda.nextAt(), churnAt, hours.closesAt, world.duskAt, counts.nextAt);
    if (at > to) break;
    if (at === hours.closesAt) closeHour(hours, traffic.population, startMs);
    else if (at === world.duskAt) shade(world, at);
    else if (at === counts.nextAt) sampleCounts(counts, fleet, traffic.population);
    else if (at === churnAt) runChurnEvent(churn, fleet, traffic.population);
    else if (at === fleet.agenda.nextAt()) runFleetEvent(fleet);
    else runTrafficEvent(traffic);
  }
  world.now = Math.max(world.now, to);
}

/** Puts another fault script in force. Its times are those since the start of the simulation. */
export function replaceFaults(world: World, faults: readonly Fault[]): void {
  world.script.faults = faults;
  shade(world, world.now);
}

function shade(world: World, at: EpochMs): void {
  darken(world.fleet, darkRegions(world.script, at), at);
  world.duskAt = nextDusk(world.script, at);
}
