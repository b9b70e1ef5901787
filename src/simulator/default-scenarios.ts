import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { type ChurnRates, type FleetRates, SCOPES, type Scenario, type ServiceOptions } from "../model/scenario.ts";

/** The API key of the default scenarios, with every scope. It is valid only for a simulation. */
export const SIMULATION_KEY = "simulation-key";

/** A list that is served completely, with the exact total. */
const defaultListOptions = {
  recordsMax: Number.POSITIVE_INFINITY,
  totalCounts: "list",
  totalLagMs: 0,
  totalOffBy: 0,
} as const;

/** The default service: a token bucket, headers by category, pages from 1, errors with code and message. */
export const defaultServiceOptions: ServiceOptions = {
  limiter: "token_bucket",
  rateLimitHeaders: "category",
  firstPage: 1,
  pageLimitDefault: 50,
  pageLimitMax: 1_000,
  pageLimitOver: "clamp",
  pageLimitEcho: "effective",
  usageScale: "ratio",
  detailUptime: "floored",
  detailLocation: "same",
  createdAt: "creation",
  quarantineStatus: "quarantined",
  errorBody: "code",
  actionReply: "success",
  listEndedSessions: false,
  plan: "business",
  unknownNodeStatus: 404,
  planCapStatus: 429,
  compression: "off",
  tokenBucketReset: "full",
  nodeList: { order: "joined", ...defaultListOptions },
  sessionList: { order: "started_at", ...defaultListOptions },
};

/** A healthy fleet: about 17 of 500 nodes fail per day, and half of the failures end without a repair. */
const calmFleetRates: FleetRates = {
  faultEveryMs: 30 * DAY_MS,
  selfHealing: 0.5,
  incurable: 0.1,
  flapping: 0.2,
  rebootMs: 2 * MINUTE_MS,
  maintenanceEveryMs: 30 * DAY_MS,
  repairMs: 12 * HOUR_MS,
};

/** No node joins or leaves. */
const noChurn: ChurnRates = {
  joinEveryMs: Number.POSITIVE_INFINITY,
  leaveEveryMs: Number.POSITIVE_INFINITY,
  vanishAfterReboot: 0,
  failAfterReboot: 0,
  vanishForMs: Number.POSITIVE_INFINITY,
  reuseIds: false,
};

/** A calm network of 500 nodes and 5,000 sessions without faults. */
export const defaultScenario: Scenario = {
  seed: 1,
  nodes: 500,
  sessions: 5_000,
  service: defaultServiceOptions,
  rates: calmFleetRates,
  churn: noChurn,
  faults: [],
  keys: [{ key: SIMULATION_KEY, scopes: SCOPES }],
};

/**
 * The same network with about four failures and crashes a minute, so that five minutes show failures, recoveries and
 * reboots.
 */
export const demoScenario: Scenario = {
  ...defaultScenario,
  service: { ...defaultServiceOptions, listEndedSessions: true },
  rates: {
    faultEveryMs: 2 * HOUR_MS,
    selfHealing: 0.7,
    incurable: 0.1,
    flapping: 0.3,
    rebootMs: 45 * SECOND_MS,
    maintenanceEveryMs: 2 * DAY_MS,
    repairMs: 20 * MINUTE_MS,
  },
};
