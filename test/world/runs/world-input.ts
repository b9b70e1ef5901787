import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { CollectionSettings } from "../../../src/collectors/collector-manager.ts";
import type { Scenario, ServiceOptions } from "../../../src/config/schema/scenario.ts";
import type { EpochMs } from "../../../src/model/time.ts";
import { type Limits, pollingCallsPerMonth } from "../../../src/rate-limit/limits.ts";
import { billingMonthOf } from "../../../src/rate-limit/monthly-budget.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { createPlanLimits, everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import type { Configuration } from "../daemon/daemon-process.ts";
import {
  cacheFaults,
  longFaults,
  misleadingFaults,
  phantomFaults,
  randomFaults,
  regionOutages,
} from "../faults/faults-input.ts";
import { answeredActions, instanceFaults } from "../faults/instance-faults.ts";
import { longWaits } from "../faults/long-waits.ts";
import { lateReboots, longDowntimes, randomEvents, suspensions, type TimedEvent } from "../faults/world-events.ts";
import { randomConfig } from "./policies-input.ts";
import { createRandomChoices, type RandomChoices } from "./random-choices.ts";
import { randomService } from "./service-input.ts";

/** The input of a run, derived from a seed. */
export interface WorldInput {
  readonly seed: number;
  readonly startMs: EpochMs;
  readonly scenario: Scenario;
  /** Calls a month that the service allows, or null for those of its plan. */
  readonly callsPerMonth: number | null;
  /** Calls of the month that were used before the start. */
  readonly callsUsed: number;
  /** Mean time from a request to its response. */
  readonly latencyMs: DurationMs;
  readonly configuration: Configuration;
  /** In the order of their times. */
  readonly events: readonly TimedEvent[];
  /** Start of the quiet period, in which no fault and no event happens. */
  readonly quietAtMs: DurationMs;
  readonly endMs: DurationMs;
}

/** Size of a run. */
export interface WorldSize {
  readonly nodes: number;
  readonly days: number;
}

/** Time without faults and events at the start, in which the daemon learns the fleet. */
const WARM_UP_MS: DurationMs = 30 * MINUTE_MS;
/** The quiet end of a run, long enough for an incident followed by a step whose node is not listed. */
export const QUIET_PERIOD_MS: DurationMs = 12 * HOUR_MS;

/** Two of them are at the end of a month, so that a month of the plan ends within a run. */
const STARTS: readonly EpochMs[] = [Date.UTC(2026, 2, 1), Date.UTC(2026, 2, 30, 6), Date.UTC(2026, 1, 28, 12)];

const LATENCY_MS: DurationMs = 50;
/** Of a service that answers slowly, but in time. */
const SLOW_LATENCY_MS: DurationMs = 1_200;

/** Calls per minute that the rest of a month allows for polling if most of its calls are used. */
const SCARCE_CALLS_PER_MINUTE = 3;

/** Mean time between the failures of a node, and until an operator repairs one. */
const FAILURE_RATES = [
  { faultEveryMs: 4 * HOUR_MS, repairMs: 40 * MINUTE_MS },
  { faultEveryMs: 12 * HOUR_MS, repairMs: 2 * HOUR_MS },
  { faultEveryMs: 40 * HOUR_MS, repairMs: 8 * HOUR_MS },
];

/** Maximum length of a text, such as the configuration of a reload. Longer ones are cut off. */
const CAUSE_CHARACTERS_MAX = 200;

const FLEETS = [60, 80, 100, 120, 150, 200, 300] as const;
const SMALL_FLEETS = [20, 30, 45] as const;

/** Returns the default fleet size of a seed. */
export const nodesOf = (seed: number): number =>
  createRandomChoices(seededRandom(seed * 31 + 5)).pick(seed % 8 === 6 ? SMALL_FLEETS : FLEETS);

/** Returns the input of a seed. The same seed and size give the same input. */
export function worldInput(seed: number, { nodes, days }: WorldSize): WorldInput {
  const choices = createRandomChoices(seededRandom(seed * 7_919));
  const endMs = days * DAY_MS;
  const quietAtMs = Math.max(WARM_UP_MS, endMs - QUIET_PERIOD_MS);
  const plan = choices.pick(["starter", "business", "business", "enterprise"] as const);
  const callsPerMonth = plan === "starter" && choices.chance(0.3) ? 60_000 : null;
  const service = randomService(seed, choices, plan);
  const settings = { ...settingsOf(choices, limitsOf(plan, callsPerMonth)), usageScale: service.usageScale };
  const config = randomConfig(choices);
  const waits = seed % 8 === 6 ? longWaits(createRandomChoices(seededRandom(seed * 4_001)), WARM_UP_MS, quietAtMs) : [];
  const scenario: Scenario = {
    ...demoScenario,
    seed,
    nodes,
    service,
    sessions: Math.round(nodes * choices.pick([0.2, 0.5, 1])),
    rates: {
      ...demoScenario.rates,
      ...choices.pick(FAILURE_RATES),
      selfHealing: choices.pick([0.2, 0.6]),
      incurable: 0.2,
      rebootMs: Math.max(
        choices.pick([10 * SECOND_MS, 45 * SECOND_MS, 3 * MINUTE_MS]),
        // Longer than a step waits.
        seed % 16 === 11 || seed % 16 === 12 ? 8 * MINUTE_MS : 0,
      ),
    },
    churn: churnOf(choices),
    faults: [
      ...randomFaults(choices, WARM_UP_MS, quietAtMs),
      ...misleadingFaults(createRandomChoices(seededRandom(seed * 6_101)), WARM_UP_MS, quietAtMs),
      ...cacheFaults(createRandomChoices(seededRandom(seed * 3_011)), WARM_UP_MS, quietAtMs),
      ...phantomFaults(createRandomChoices(seededRandom(seed * 1_009)), WARM_UP_MS, quietAtMs),
      ...longFaults(createRandomChoices(seededRandom(seed * 6_007)), WARM_UP_MS, quietAtMs),
      ...instanceFaults(createRandomChoices(seededRandom(seed * 8_009)), WARM_UP_MS, quietAtMs),
      ...answeredActions(createRandomChoices(seededRandom(seed * 8_017)), WARM_UP_MS, quietAtMs),
      ...waits.map(({ fault }) => fault),
      ...regionOutages(createRandomChoices(seededRandom(seed * 2_017)), WARM_UP_MS, quietAtMs),
    ],
  };
  const configuration = { settings, config };
  const events = [
    ...randomEvents(choices, { nodes, fromMs: WARM_UP_MS, untilMs: quietAtMs, configuration }),
    // Drawn separately, so that all else stays as it was.
    ...suspensions(createRandomChoices(seededRandom(seed * 2_203)), WARM_UP_MS, quietAtMs),
    ...lateReboots(createRandomChoices(seededRandom(seed * 1_511)), WARM_UP_MS, quietAtMs),
    ...longDowntimes(createRandomChoices(seededRandom(seed * 5_003)), WARM_UP_MS, quietAtMs),
    ...waits.map(({ restart }) => restart),
  ].toSorted((one, other) => one.atMs - other.atMs);
  const startMs = choices.pick(STARTS);
  const callsUsed = callsUsedOf(seed, settings, startMs);
  const latencyMs = seed % 8 === 7 ? SLOW_LATENCY_MS : LATENCY_MS;
  return { seed, scenario, callsPerMonth, callsUsed, latencyMs, configuration, events, quietAtMs, endMs, startMs };
}

/** Lists the faults and events of a run with their names for `--keep`. */
export const causesOf = ({
  scenario,
  events,
}: WorldInput): readonly { readonly name: string; readonly text: string }[] => [
  ...scenario.faults.map((fault, index) => ({ name: `f${index}`, text: JSON.stringify(fault) })),
  ...events.map((event, index) => ({ name: `e${index}`, text: JSON.stringify(event).slice(0, CAUSE_CHARACTERS_MAX) })),
];

/** Returns the same run with only the named faults and events. */
export function inputWithCauses(input: WorldInput, keptCauses: ReadonlySet<string>): WorldInput {
  const faults = input.scenario.faults.filter((_, index) => keptCauses.has(`f${index}`));
  const events = input.events.filter((_, index) => keptCauses.has(`e${index}`));
  return { ...input, events, scenario: { ...input.scenario, faults } };
}

function limitsOf(plan: ServiceOptions["plan"], callsPerMonth: number | null): Limits {
  const limits = createPlanLimits(plan);
  return callsPerMonth === null ? limits : { ...limits, plan: { ...limits.plan, callsPerMonth } };
}

/** Returns the calls that were used before the start, which are 0 in most runs. */
function callsUsedOf(seed: number, { limits, monthStartsOn }: CollectionSettings, startMs: EpochMs): number {
  const { callsPerMonth } = limits.plan;
  if (callsPerMonth === null || seed % 4 !== 3) return 0;
  const leftMs = billingMonthOf(startMs, monthStartsOn).endMs - startMs;
  const callsLeft = Math.round((leftMs / MINUTE_MS) * SCARCE_CALLS_PER_MINUTE);
  return Math.max(0, pollingCallsPerMonth(callsPerMonth) - callsLeft);
}

function churnOf(choices: RandomChoices): Scenario["churn"] {
  const never = Number.POSITIVE_INFINITY;
  const everyMs = choices.pick([never, 4 * HOUR_MS, HOUR_MS]);
  return {
    joinEveryMs: everyMs,
    leaveEveryMs: everyMs,
    vanishAfterReboot: choices.pick([0, 0.1, 0.3]),
    failAfterReboot: choices.pick([0, 0.1, 0.3]),
    vanishForMs: choices.pick([15 * MINUTE_MS, 3 * HOUR_MS, never]),
    reuseIds: choices.chance(0.3),
  };
}

/** Draws intervals that are realistic for a fleet of this size. */
function settingsOf(choices: RandomChoices, limits: Limits): CollectionSettings {
  const every = (minutes: number) => ({ kind: "every", intervalMs: minutes * MINUTE_MS }) as const;
  return {
    ...everyMinuteSettings,
    limits,
    schedules: {
      ...everyMinuteSettings.schedules,
      nodes: every(choices.pick([1, 2, 3])),
      details: choices.chance(0.7) ? every(choices.pick([60, 240])) : null,
      sessions: choices.chance(0.5) ? every(choices.pick([5, 10])) : null,
      stats: every(30),
      hourly: choices.chance(0.2) ? everyMinuteSettings.schedules.hourly : null,
    },
    pageLimit: choices.pick([100, 1_000]),
  };
}
