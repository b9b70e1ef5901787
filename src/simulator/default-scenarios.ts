import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { ChurnRates, FleetRates, Scenario, ServiceOptions } from "../model/scenario.ts";
import { SCOPES } from "./api/api-keys.ts";

/** The key of the default scenarios, with every scope. It opens nothing but a simulation. */
export const SIMULATION_KEY = "simulation-key";

/** A list that can be paged through to its end, with the true total. */
const defaultListOptions = {
  recordsMax: Number.POSITIVE_INFINITY,
  totalCounts: "list",
  totalLagMs: 0,
  totalOffBy: 0,
} as const;

/** A service as most are: a token bucket, headers by category, pages from 1, errors as code and message. */
export const defaultServiceOptions: ServiceOptions = {
  limiter: "token_bucket",
  rateLimitHeaders: "category",
  firstPage: 1,
  pageLimitDefault: 50,
  pageLimitMax: 1_000,
  pageLimitOver: "clamp",
  pageLimitEcho: "effective",
  usageScale: "ratio",
  errorBody: "code",
  actionReply: "success",
  listEndedSessions: false,
  plan: "business",
  planCapStatus: 429,
  compression: "off",
  tokenBucketReset: "full",
  nodeList: { order: "joined", ...defaultListOptions },
  sessionList: { order: "started_at", ...defaultListOptions },
};

/** A healthy fleet: about 17 of 500 nodes fail per day, and half of them recover by themselves. */
const calmFleetRates: FleetRates = {
  faultEveryMs: 30 * DAY_MS,
  selfHealing: 0.5,
  incurable: 0.1,
  flapping: 0.2,
  rebootMs: 2 * MINUTE_MS,
  maintenanceEveryMs: 30 * DAY_MS,
  repairMs: 12 * HOUR_MS,
};

/** The nodes of the start are the nodes of the end. */
const noChurn: ChurnRates = {
  joinEveryMs: Number.POSITIVE_INFINITY,
  leaveEveryMs: Number.POSITIVE_INFINITY,
  vanishAfterReboot: 0,
  vanishForMs: Number.POSITIVE_INFINITY,
  reuseIds: false,
};

/** A calm network of 500 nodes and 5,000 sessions, and no faults. */
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
 * The same network in a bad week: of 500 nodes some four a minute fall ill or crash, and whoever watches for five
 * minutes sees them fail, recover and reboot.
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
