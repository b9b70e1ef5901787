import { MINUTE_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import {
  LIMITER_KINDS,
  NODE_ORDERS,
  SESSION_ORDERS,
  type ServiceOptions,
} from "../../../src/config/schema/scenario.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { createRandomChoices, type RandomChoices } from "./random-choices.ts";

/** Smaller pages can't show a list in the order of last_seen. */
const WALKABLE_PAGE_LIMIT_MIN = 100;

/** Draws the choices that the API documentation leaves to the service. */
export const randomService = (seed: number, choices: RandomChoices, plan: ServiceOptions["plan"]): ServiceOptions =>
  rareVariantOf(seed, variantOf(seed, walkable(serviceOf(choices, plan))));

function serviceOf(choices: RandomChoices, plan: ServiceOptions["plan"]): ServiceOptions {
  const service = demoScenario.service;
  const isInexact = choices.chance(0.4);
  return {
    ...service,
    plan,
    limiter: choices.pick(LIMITER_KINDS),
    rateLimitHeaders: choices.pick(["category", "plan", "off"]),
    tokenBucketReset: choices.pick(["full", "next_token"]),
    actionReply: choices.pick(["success", "empty_object", "no_content"]),
    errorBody: choices.pick(["code", "nested", "text", "empty"]),
    unknownNodeStatus: choices.pick([404, 404, 410, 400]),
    planCapStatus: choices.pick([429, 403]),
    firstPage: choices.pick([0, 1, 1]),
    pageLimitMax: choices.pick([25, 50, 100, 1_000]),
    pageLimitOver: choices.pick(["clamp", "clamp", "reject"]),
    pageLimitEcho: choices.pick(["effective", "requested"]),
    usageScale: "ratio",
    listEndedSessions: choices.chance(0.7),
    nodeList: {
      ...service.nodeList,
      order: choices.chance(0.5) ? "joined" : `${choices.pick(["", "-"] as const)}${choices.pick(NODE_ORDERS)}`,
      totalLagMs: isInexact ? choices.pick([0, MINUTE_MS, 10 * MINUTE_MS]) : 0,
      totalOffBy: isInexact ? choices.pick([0, 1, -1, 7]) : 0,
    },
  };
}

/**
 * Small pages of a list in the order of last_seen shift by about as much as they hold while the next page is read,
 * always in the same way, since the simulated nodes report every 15 s. No sequence of pages shows such a list.
 */
function walkable(service: ServiceOptions): ServiceOptions {
  const { nodeList, pageLimitMax } = service;
  const isUnwalkable = nodeList.order.endsWith("last_seen") && pageLimitMax < WALKABLE_PAGE_LIMIT_MIN;
  return isUnwalkable ? { ...service, nodeList: { ...nodeList, order: "joined" } } : service;
}

/** By the number of the seed, modulo 16. */
const REBOOT_STATUSES: Readonly<Record<number, ServiceOptions["rebootStatus"]>> = {
  1: "offline",
  3: "online",
  11: "offline",
};

/** Draws or derives further options from the number of the seed alone, so that all else stays as it was. */
function variantOf(seed: number, service: ServiceOptions): ServiceOptions {
  const choices = createRandomChoices(seededRandom(seed * 4_799));
  const totalCounts = seed % 16 === 9 ? "list_unless_empty" : "list";
  return {
    ...service,
    detailUptime: choices.pick(["floored", "floored", "rounded", "exact"]),
    detailLocation: seed % 8 === 2 ? "other_case" : "same",
    createdAt: createdAtOf(seed),
    quarantineStatus: seed % 8 === 4 ? "maintenance" : seed % 16 === 10 ? "offline" : "quarantined",
    quarantineEnd: seed % 8 === 7 ? "never" : "duration",
    rateLimitReset: seed % 16 === 14 ? "milliseconds" : "seconds",
    rebootStatus: REBOOT_STATUSES[seed % 16] ?? "rebooting",
    usageScale: seed % 8 === 5 ? "percent" : "ratio",
    unknownNodeStatus: seed % 16 === 7 ? 403 : service.unknownNodeStatus,
    nodeList: { ...service.nodeList, totalCounts },
    sessionList: { ...service.sessionList, totalCounts, order: choices.pick(["started_at", ...SESSION_ORDERS]) },
    bootedStatus: choices.pick(["online", "online", "starting"]),
    timestamps: choices.pick(["milliseconds", "seconds", "offset", "other_zone", "no_zone"]),
    lastSeenEveryMs: choices.pick([0, 0, MINUTE_MS, 4 * MINUTE_MS]),
    offlineValues: choices.pick(["last", "zero", "null"]),
  };
}

function createdAtOf(seed: number): ServiceOptions["createdAt"] {
  if (seed % 16 === 0) return "request";
  return seed % 8 === 0 ? "boot" : "creation";
}

/** By the number of the seed, modulo 16. */
const TOTALS: Readonly<Record<number, Partial<ServiceOptions["nodeList"]>>> = {
  5: { totalCounts: "page" },
  13: { totalFixed: 10_000 },
};

/** Draws further options from the number of the seed alone. */
function rareVariantOf(seed: number, service: ServiceOptions): ServiceOptions {
  const choices = createRandomChoices(seededRandom(seed * 4_801));
  const instances = choices.pick([1, 1, 2, 3]);
  const pagesAfterEnd = choices.pick(["empty", "not_found", "last"] as const);
  return {
    ...service,
    instances,
    pagesAfterEnd: seed % 8 === 3 ? "rejected" : pagesAfterEnd,
    uptimeSince: choices.pick(["boot", "boot", "boot", "creation"]),
    quarantineMinutesMax: choices.pick([43_200, 43_200, 10]),
    detailLastSeenEveryMs: choices.pick([0, 0, 0, 5 * MINUTE_MS, 15 * MINUTE_MS]),
    nodeList: { ...service.nodeList, ...TOTALS[seed % 16] },
  };
}
