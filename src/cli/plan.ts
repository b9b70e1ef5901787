import { DAY_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { CollectionSettings } from "../collectors/collector-manager.ts";
import type { NetworkSize } from "../collectors/polling-plan.ts";
import { requestedIntervalsOf } from "../collectors/schedule.ts";
import { type ConfigResources, openConfigResources } from "../daemon/active-config.ts";
import { createSystemClock } from "../platform/clock.ts";
import { createCron } from "../platform/cron.ts";
import { billingMonthOf } from "../rate-limit/billing-month.ts";
import type { MonthUsage } from "../rate-limit/monthly-budget.ts";
import { planPolling as planOf } from "../scheduling/planner.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode, readTextFile } from "./context.ts";
import {
  type GivenCounts,
  givenNetworkSize,
  queryNetworkSize,
  readStoredState,
  type StoredState,
} from "./network-size/network-size.ts";
import { type CountSource, formatPlan, type PlanReport, planToJson } from "./output/plan-table.ts";

/** Options of `plan`: how much there is to be polled; absent: as the daemon saw it last, or as the service says. */
export interface PlanOptions extends GivenCounts {
  readonly config: string;
  readonly output: "text" | "json";
}

const FULL_MONTH: MonthUsage = { callsUsed: 0, leftMs: 30 * DAY_MS };

/** `plan --config FILE`: what will be polled how often, how old the data will be, what was stretched, and why. */
export async function runPlan(options: PlanOptions, context: CommandContext): Promise<ExitCode> {
  const planned = await planNetwork(options, context);
  if (!planned.ok) {
    context.err.write(planned.error.map((problem) => `proxywarden: ${problem}\n`).join(""));
    return EXIT_FAILURE;
  }
  context.out.write(options.output === "json" ? planToJson(planned.value) : formatPlan(planned.value));
  return EXIT_OK;
}

async function planNetwork(
  options: PlanOptions,
  context: CommandContext,
): Promise<Result<PlanReport, readonly string[]>> {
  const read = readConfigFile(options.config, context.env);
  if (!read.ok) return read;
  const clock = createSystemClock();
  const access = openConfigResources(read.value, { clock, readFile: readTextFile, version: context.version });
  if (!access.ok) return access;
  const { settings, transport, integrations: relations } = access.value;
  try {
    const past = readStoredState(read.value.config, clock.now());
    if (!past.ok) return past;
    const known = await networkSize(options, past.value, access.value, context);
    if (!known.ok) return known;
    const { extent, source } = known.value;
    const { limits, reads, schedules: cadences } = settings;
    const wishes = requestedIntervalsOf(cadences, { clock, cron: createCron() });
    // Without a daemon's past it is not about this month: a month that begins late would have far more to spend.
    const isWholeMonth = source !== "state";
    const input = {
      ...extent,
      requestedIntervals: wishes,
      limits,
      reads,
      month: isWholeMonth ? FULL_MONTH : remainingMonth(past.value, settings),
    };
    return ok({ extent, source, input, isFullMonth: isWholeMonth, plan: planOf(input) });
  } finally {
    await Promise.all([transport.close(), relations.close()]);
  }
}

function remainingMonth({ callsUsed: used }: StoredState, { monthStartsOn }: CollectionSettings): MonthUsage {
  const now = createSystemClock().now();
  return { callsUsed: used, leftMs: billingMonthOf(now, monthStartsOn).endMs - now };
}

async function networkSize(
  given: PlanOptions,
  { extent: seen }: StoredState,
  access: ConfigResources,
  { version, stop }: CommandContext,
): Promise<Result<{ readonly extent: NetworkSize; readonly source: CountSource }, readonly string[]>> {
  const { pageLimit } = access.settings;
  if (given.nodes !== undefined && given.sessions !== undefined) {
    return ok({ extent: givenNetworkSize(given, seen, pageLimit), source: "options" });
  }
  if (seen !== null) return ok({ extent: givenNetworkSize(given, seen, pageLimit), source: "state" });
  const asked = await queryNetworkSize(access, `proxywarden/${version}`, stop);
  return asked.ok
    ? ok({ extent: givenNetworkSize(given, asked.value, pageLimit), source: "service" })
    : fail(asked.error);
}
