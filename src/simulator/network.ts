import type { Fault, Scenario } from "../model/scenario.ts";
import type { EpochMs } from "../model/time.ts";
import { type Churn, createChurn, nextChurnEvent, runChurnEvent } from "./fleet/churn.ts";
import { createFleet, type Fleet, runFleetEvent, setDownRegions } from "./fleet/fleet.ts";
import type { Uint32 } from "./hash.ts";
import { type FaultSchedule, nextRegionChange, regionsDownAt } from "./http/faults.ts";
import { type CountHistory, createCountHistory, sampleCounts } from "./sessions/count-history.ts";
import { closeHour, createHourlyHistory, type HourlyHistory } from "./sessions/hourly-statistics.ts";
import { createTraffic, cutSessions, nextTrafficEvent, runTrafficEvent, type Traffic } from "./sessions/traffic.ts";

/** The nodes, sessions and history of the simulated network, which the scenario determines. */
export interface World {
  readonly seed: Uint32;
  readonly startMs: EpochMs;
  readonly fleet: Fleet;
  readonly traffic: Traffic;
  readonly churn: Churn;
  readonly countHistory: CountHistory;
  readonly hours: HourlyHistory;
  readonly faultSchedule: FaultSchedule;
  now: EpochMs;
  /** When a region is next cut off or reconnected. */
  regionChangeAt: EpochMs;
}

/** Creates the network at the start of the simulation. */
export function createWorld(scenario: Scenario, startMs: EpochMs): World {
  let traffic: Traffic | null = null;
  const fleet = createFleet(scenario, startMs, (node, at, ending) => {
    // There are no sessions during the fleet's warm-up before the start.
    if (traffic !== null) cutSessions(traffic, node, at - startMs, ending);
  });
  traffic = createTraffic(scenario, startMs, fleet);
  const hours = createHourlyHistory(scenario.seed, scenario.sessions, traffic.population, startMs);
  const faultSchedule: FaultSchedule = { startMs, seed: scenario.seed, faults: [] };
  const world: World = {
    ...{ seed: scenario.seed, startMs, fleet, traffic, hours, faultSchedule, now: startMs, regionChangeAt: 0 },
    churn: createChurn(scenario, startMs),
    countHistory: createCountHistory(scenario.service, startMs),
  };
  replaceFaults(world, scenario.faults);
  return world;
}

/** Executes all events that are due by `to`, each at its time. Does nothing if `to` is before an earlier one. */
export function advanceWorld(world: World, to: EpochMs): void {
  const { fleet, traffic, churn, countHistory, hours, startMs } = world;
  for (;;) {
    const trafficAt = startMs + nextTrafficEvent(traffic);
    const churnAt = nextChurnEvent(churn);
    const at = Math.min(
      trafficAt,
      fleet.eventQueue.nextAt(),
      churnAt,
      hours.closesAt,
      world.regionChangeAt,
      countHistory.nextAt,
    );
    if (at > to) break;
    if (at === hours.closesAt) closeHour(hours, traffic.population, startMs);
    else if (at === world.regionChangeAt) applyRegionOutages(world, at);
    else if (at === countHistory.nextAt) sampleCounts(countHistory, fleet, traffic.population);
    else if (at === churnAt) runChurnEvent(churn, fleet, traffic.population);
    else if (at === fleet.eventQueue.nextAt()) runFleetEvent(fleet);
    else runTrafficEvent(traffic);
  }
  world.now = Math.max(world.now, to);
}

/** Replaces the faults. Times are since the start of the simulation. */
export function replaceFaults(world: World, faults: readonly Fault[]): void {
  world.faultSchedule.faults = faults;
  applyRegionOutages(world, world.now);
}

function applyRegionOutages(world: World, at: EpochMs): void {
  setDownRegions(world.fleet, regionsDownAt(world.faultSchedule, at), at);
  world.regionChangeAt = nextRegionChange(world.faultSchedule, at);
}
