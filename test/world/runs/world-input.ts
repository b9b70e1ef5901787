import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { Limits } from "../../../src/rate-limit/limits.ts";
import type { WatchSettings } from "../../../src/collectors/collector-manager.ts";
import { type LimiterKind, NODE_ORDERS, type Scenario, type ServiceOptions } from "../../../src/model/scenario.ts";
import type { EpochMs } from "../../../src/model/time.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { createPlanLimits, minuteSettings } from "../../harness/virtual-daemon.ts";
import { createDraw, type Draw } from "./random-choices.ts";
import { drawFaults } from "../faults/faults-input.ts";
import type { Configuration } from "../daemon/daemon-process.ts";
import { drawRules } from "./policies-input.ts";
import { drawEvents, type TimedEvent } from "../faults/world-events.ts";

/** Everything that a seed makes of one run. */
export interface WorldInput {
  readonly seed: number;
  readonly startMs: EpochMs;
  readonly scenario: Scenario;
  /** Calls that the service allows in a month, where they differ from its plan's. */
  readonly callsPerMonth: number | null;
  readonly configuration: Configuration;
  /** In the order of their times from the start. */
  readonly events: readonly TimedEvent[];
  /** From then on nothing goes wrong any more. */
  readonly quietAtMs: DurationMs;
  readonly endMs: DurationMs;
}

/** How large a run is. */
export interface WorldSize {
  readonly nodes: number;
  readonly days: number;
}

/** Until then a run is left alone, so that the daemon knows the fleet. */
const SETTLING_MS: DurationMs = 30 * MINUTE_MS;
/** The quiet end of a run: as long as an incident and a step whose node is not seen may hold, one after the other. */
export const QUIET_MS: DurationMs = 12 * HOUR_MS;

/** Ends of February and of March: a month of the plan may end within a run. */
const STARTS: readonly EpochMs[] = [Date.UTC(2026, 2, 1), Date.UTC(2026, 2, 30, 6), Date.UTC(2026, 1, 28, 12)];

/** How often nodes fall ill, and how long until an operator repairs them. */
const ILLNESS = [
  { faultEveryMs: 4 * HOUR_MS, repairMs: 40 * MINUTE_MS },
  { faultEveryMs: 12 * HOUR_MS, repairMs: 2 * HOUR_MS },
  { faultEveryMs: 40 * HOUR_MS, repairMs: 8 * HOUR_MS },
];

/** A reload names a whole configuration. */
const CAUSE_CHARACTERS_MAX = 200;

const FLEETS = [60, 80, 100, 120, 150, 200, 300] as const;

/** The size of the fleet of a seed where none is asked for. */
export const nodesOf = (seed: number): number => createDraw(seededRandom(seed * 31 + 5)).one(FLEETS);

/** Makes the input of a seed: a pure function of the seed and the size. */
export function worldInput(seed: number, { nodes, days }: WorldSize): WorldInput {
  const draw = createDraw(seededRandom(seed * 7_919));
  const endMs = days * DAY_MS;
  const quietAtMs = Math.max(SETTLING_MS, endMs - QUIET_MS);
  const plan = draw.one(["starter", "business", "business", "enterprise"] as const);
  const callsPerMonth = plan === "starter" && draw.chance(0.3) ? 60_000 : null;
  const service = serviceOf(draw, plan);
  const settings = settingsOf(draw, limitsOf(plan, callsPerMonth));
  const rules = drawRules(draw);
  const scenario: Scenario = {
    ...demoScenario,
    ...{ seed, nodes, service, sessions: Math.round(nodes * draw.one([0.2, 0.5, 1])) },
    rates: {
      ...demoScenario.rates,
      ...draw.one(ILLNESS),
      selfHealing: draw.one([0.2, 0.6]),
      incurable: 0.2,
      rebootMs: draw.one([10 * SECOND_MS, 45 * SECOND_MS, 3 * MINUTE_MS]),
    },
    churn: churnOf(draw),
    faults: drawFaults(draw, SETTLING_MS, quietAtMs),
  };
  const configuration = { settings, rules };
  const events = drawEvents(draw, { nodes, fromMs: SETTLING_MS, untilMs: quietAtMs, configuration });
  return { ...{ seed, scenario, callsPerMonth, configuration, events, quietAtMs, endMs }, startMs: draw.one(STARTS) };
}

/** What happens in a run beside what its fleet does by itself, each with the name by which it is kept or dropped. */
export const causesOf = ({
  scenario,
  events,
}: WorldInput): readonly { readonly name: string; readonly text: string }[] => [
  ...scenario.faults.map((fault, index) => ({ name: `f${index}`, text: JSON.stringify(fault) })),
  ...events.map((event, index) => ({ name: `e${index}`, text: JSON.stringify(event).slice(0, CAUSE_CHARACTERS_MAX) })),
];

/** The same run with these causes alone. */
export function keptInput(input: WorldInput, kept: ReadonlySet<string>): WorldInput {
  const faults = input.scenario.faults.filter((_, index) => kept.has(`f${index}`));
  const events = input.events.filter((_, index) => kept.has(`e${index}`));
  return { ...input, events, scenario: { ...input.scenario, faults } };
}

function limitsOf(plan: ServiceOptions["plan"], callsPerMonth: number | null): Limits {
  const limits = createPlanLimits(plan);
  return callsPerMonth === null ? limits : { ...limits, plan: { ...limits.plan, callsPerMonth } };
}

function serviceOf(draw: Draw, plan: ServiceOptions["plan"]): ServiceOptions {
  const service = demoScenario.service;
  const isInexact = draw.chance(0.4);
  return {
    ...service,
    plan,
    limiter: draw.one<LimiterKind>(["token_bucket", "fixed_window", "sliding_window"]),
    rateLimitHeaders: draw.one(["category", "plan", "off"]),
    tokenBucketReset: draw.one(["full", "next_token"]),
    actionReply: draw.one(["success", "empty_object", "no_content"]),
    errorBody: draw.one(["code", "nested", "text", "empty"]),
    planCapStatus: draw.one([429, 403]),
    firstPage: draw.one([0, 1, 1]),
    pageLimitMax: draw.one([25, 50, 100, 1_000]),
    pageLimitOver: draw.one(["clamp", "clamp", "reject"]),
    pageLimitEcho: draw.one(["effective", "requested"]),
    usageScale: "ratio",
    listEndedSessions: draw.chance(0.7),
    nodeList: {
      ...service.nodeList,
      order: draw.chance(0.5) ? "joined" : `${draw.one(["", "-"] as const)}${draw.one(NODE_ORDERS)}`,
      totalLagMs: isInexact ? draw.one([0, MINUTE_MS, 10 * MINUTE_MS]) : 0,
      totalOffBy: isInexact ? draw.one([0, 1, -1, 7]) : 0,
    },
  };
}

function churnOf(draw: Draw): Scenario["churn"] {
  const never = Number.POSITIVE_INFINITY;
  const everyMs = draw.one([never, 4 * HOUR_MS, HOUR_MS]);
  return {
    joinEveryMs: everyMs,
    leaveEveryMs: everyMs,
    vanishAfterReboot: draw.one([0, 0.1, 0.3]),
    vanishForMs: draw.one([15 * MINUTE_MS, 3 * HOUR_MS, never]),
    reuseIds: draw.chance(0.3),
  };
}

/** Intervals that a fleet of this size may well be polled by. */
function settingsOf(draw: Draw, limits: Limits): WatchSettings {
  const every = (minutes: number) => ({ kind: "every", intervalMs: minutes * MINUTE_MS }) as const;
  return {
    ...minuteSettings,
    limits,
    cadences: {
      ...minuteSettings.cadences,
      nodes: every(draw.one([1, 2, 3])),
      details: draw.chance(0.7) ? every(draw.one([60, 240])) : null,
      sessions: draw.chance(0.5) ? every(draw.one([5, 10])) : null,
      stats: every(30),
      hourly: draw.chance(0.2) ? minuteSettings.cadences.hourly : null,
    },
    pageLimit: draw.one([100, 1_000]),
  };
}
