import type { Fault, Scenario } from "../config/schema/scenario.ts";
import type { EpochMs } from "../model/time.ts";
import { type Churn, createChurn, nextChurnEvent, runChurnEvent } from "./fleet/churn.ts";
import { createFleet, type Fleet, runFleetEvent, setDownRegions } from "./fleet/fleet.ts";
import type { Uint32 } from "./hash.ts";
import { type FaultSchedule, nextRegionChange, regionsDownAt } from "./http/faults.ts";
import { type CountHistory, createCountHistory, sampleCounts } from "./sessions/count-history.ts";
import { closeHour, createHourlyHistory, type HourlyHistory } from "./sessions/hourly-statistics.ts";
import { createTraffic, cutSessions, nextTrafficEvent, runTrafficEvent, type Traffic } from "./sessions/traffic.ts";

/** The nodes, sessions and history of the simulated network, which the scenario determines. */
export interface Network {
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
export function createNetwork(scenario: Scenario, startMs: EpochMs): Network {
  let traffic: Traffic | null = null;
  const fleet = createFleet(scenario, startMs, (node, at, ending) => {
    // There are no sessions during the fleet's warm-up before the start.
    if (traffic !== null) cutSessions(traffic, node, at - startMs, ending);
  });
  traffic = createTraffic(scenario, startMs, fleet);
  const hours = createHourlyHistory(scenario.seed, scenario.sessions, traffic.population, startMs);
  const faultSchedule: FaultSchedule = { startMs, seed: scenario.seed, faults: [] };
  const network: Network = {
    seed: scenario.seed,
    startMs,
    fleet,
    traffic,
    hours,
    faultSchedule,
    now: startMs,
    regionChangeAt: 0,
    churn: createChurn(scenario, startMs),
    countHistory: createCountHistory(scenario.service, startMs),
  };
  replaceFaults(network, scenario.faults);
  return network;
}

/** Executes all events that are due by `to`, each at its time. Does nothing if the network is already past `to`. */
export function advanceNetwork(network: Network, to: EpochMs): void {
  const { fleet, traffic, churn, countHistory, hours, startMs } = network;
  for (;;) {
    const trafficAt = startMs + nextTrafficEvent(traffic);
    const churnAt = nextChurnEvent(churn);
    const at = Math.min(
      trafficAt,
      fleet.eventQueue.nextAt(),
      churnAt,
      hours.closesAt,
      network.regionChangeAt,
      countHistory.nextAt,
    );
    if (at > to) break;
    if (at === hours.closesAt) closeHour(hours, traffic.population, startMs);
    else if (at === network.regionChangeAt) applyRegionOutages(network, at);
    else if (at === countHistory.nextAt) sampleCounts(countHistory, fleet, traffic.population);
    else if (at === churnAt) runChurnEvent(churn, fleet, traffic.population);
    else if (at === fleet.eventQueue.nextAt()) runFleetEvent(fleet);
    else runTrafficEvent(traffic);
  }
  network.now = Math.max(network.now, to);
}

/** Replaces the faults. Times are since the start of the simulation. */
export function replaceFaults(network: Network, faults: readonly Fault[]): void {
  network.faultSchedule.faults = faults;
  applyRegionOutages(network, network.now);
}

function applyRegionOutages(network: Network, at: EpochMs): void {
  setDownRegions(network.fleet, regionsDownAt(network.faultSchedule, at), at);
  network.regionChangeAt = nextRegionChange(network.faultSchedule, at);
}
