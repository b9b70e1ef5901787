import { type Scenario, scenarioSchema } from "../config/schema/scenario.ts";

/**
 * A calm network of 500 nodes and 5,000 sessions without faults. About 17 nodes fail per day, and three in five recover
 * without an action.
 */
export const defaultScenario: Scenario = scenarioSchema.parse({});

/** The default service: a token bucket, headers by category, pages from 1, errors with code and message. */
export const defaultServiceOptions = defaultScenario.service;

/** The API key of the default scenarios, with every scope. It is valid only for a simulation. */
export const SIMULATION_KEY = defaultScenario.keys[0]!.key;

/**
 * The same network with about four failures and crashes a minute, so that five minutes show failures, recoveries and
 * reboots.
 */
export const demoScenario: Scenario = scenarioSchema.parse({
  service: { list_ended_sessions: true },
  rates: {
    fault_every: "2h",
    self_healing: "70%",
    incurable: "10%",
    flapping: "30%",
    reboot: "45s",
    maintenance_every: "2d",
    repair: "20m",
  },
});
