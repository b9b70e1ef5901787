import { fail, ok, type Result } from "../base/result.ts";
import type { CollectionSettings } from "../collectors/collector-manager.ts";
import type { NetworkSize } from "../collectors/polling-plan.ts";
import { requestedIntervalsOf } from "../collectors/schedule.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import { closeResources, collectionSettingsOf, openConfigResources } from "../daemon/config-resources.ts";
import { systemClock } from "../platform/clock.ts";
import { createCron } from "../platform/cron.ts";
import { planPolling } from "../scheduling/planner.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { FULL_MONTH } from "./config/plan-warnings.ts";
import { type CommandContext, type ExitCode, failWith, type OutputOption, print } from "./context.ts";
import {
  type GivenCounts,
  givenNetworkSize,
  queryNetworkSize,
  readStoredState,
  type StoredState,
} from "./network-size.ts";
import { type CountSource, formatPlan, type PlanReport, planJson } from "./output/plan-table.ts";

/** Options of `plan`. Counts that are absent come from the daemon's state, or else from the service. */
export interface PlanOptions extends GivenCounts, OutputOption {
  readonly config: string;
}

/** `plan --config FILE`: shows how often each collector polls, how old its data gets, and which limit slows it down. */
export async function runPlan(options: PlanOptions, context: CommandContext): Promise<ExitCode> {
  const planned = await planNetwork(options, context);
  if (!planned.ok) return failWith(context, planned.error);
  return print(context, options, planJson(planned.value), () => formatPlan(planned.value));
}

async function planNetwork(
  options: PlanOptions,
  context: CommandContext,
): Promise<Result<PlanReport, readonly string[]>> {
  const read = readConfigFile(options.config, context.env, []);
  if (!read.ok) return read;
  const { config, policies } = read.value;
  const settings = collectionSettingsOf(config, policies);
  const stored = await readStoredState(config);
  if (!stored.ok) return fail([stored.error.message]);
  const known = await networkSize(options, stored.value, settings, context);
  if (!known.ok) return known;
  const { size, source } = known.value;
  const { limits, reads, schedules } = settings;
  const requestedIntervals = requestedIntervalsOf(schedules, { clock: systemClock, cron: createCron() });
  // Unless the size is from the daemon's state, the plan is for a full month: the calls left in this month are
  // unknown, or the counts are hypothetical.
  const isFullMonth = source !== "state";
  const input = {
    ...size,
    requestedIntervals,
    limits,
    reads,
    month: isFullMonth ? FULL_MONTH : stored.value.month,
  };
  return ok({ size, given: options, source, input, isFullMonth, plan: planPolling(input) });
}

async function networkSize(
  given: PlanOptions,
  { networkSize: seen }: StoredState,
  { pageLimit }: CollectionSettings,
  context: CommandContext,
): Promise<Result<{ readonly size: NetworkSize; readonly source: CountSource }, readonly string[]>> {
  const sizeFrom = (source: CountSource, known: NetworkSize | null) =>
    ok({ size: givenNetworkSize(given, known, pageLimit), source });
  if (given.nodes !== undefined && given.sessions !== undefined) return sizeFrom("options", seen);
  if (seen !== null) return sizeFrom("state", seen);
  const asked = await askService(given.config, context);
  return asked.ok ? sizeFrom("service", asked.value) : asked;
}

/** Asks the service for the network's size, which needs the secrets of the configuration. */
async function askService(
  file: string,
  { env, version, stop }: CommandContext,
): Promise<Result<NetworkSize, readonly string[]>> {
  const read = readConfigFile(file, env);
  if (!read.ok) return fail([...read.error, "to plan without the service, pass --nodes N --sessions N"]);
  const opened = openConfigResources(read.value, { clock: systemClock, version });
  if (!opened.ok) return fail(opened.error.map(formatProblem));
  return queryNetworkSize(opened.value, version, stop).finally(() => closeResources(opened.value));
}
