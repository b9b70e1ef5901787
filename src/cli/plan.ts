import type { CollectionSettings } from "../collectors/collector-manager.ts";
import type { NetworkSize } from "../collectors/polling-plan.ts";
import { requestedIntervalsOf } from "../collectors/schedule.ts";
import { closeResources, collectionSettingsOf, openConfigResources } from "../daemon/config-resources.ts";
import { systemClock } from "../platform/clock.ts";
import { createCron } from "../platform/cron.ts";
import { planPolling } from "../scheduling/planner.ts";
import { readConfig } from "./config/config-loading.ts";
import { FULL_MONTH } from "./config/plan-warnings.ts";
import { type CommandContext, CommandFailure, type OutputOption, orFail, print } from "./context.ts";
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
export async function runPlan(options: PlanOptions, context: CommandContext): Promise<void> {
  const planned = await planNetwork(options, context);
  print(context, options, planJson(planned), () => formatPlan(planned));
}

async function planNetwork(options: PlanOptions, context: CommandContext): Promise<PlanReport> {
  const { config, policies } = orFail(readConfig(options.config, context.env, []));
  const settings = collectionSettingsOf(config, policies);
  const stored = orFail(await readStoredState(config));
  const { size, source } = await networkSize(options, stored, settings, context);
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
    month: isFullMonth ? FULL_MONTH : stored.month,
  };
  return { size, given: options, source, input, isFullMonth, plan: planPolling(input) };
}

async function networkSize(
  given: PlanOptions,
  { networkSize: seen }: StoredState,
  { pageLimit }: CollectionSettings,
  context: CommandContext,
): Promise<{ readonly size: NetworkSize; readonly source: CountSource }> {
  const sizeFrom = (source: CountSource, known: NetworkSize | null) => ({
    size: givenNetworkSize(given, known, pageLimit),
    source,
  });
  if (given.nodes !== undefined && given.sessions !== undefined) return sizeFrom("options", seen);
  if (seen !== null) return sizeFrom("state", seen);
  return sizeFrom("service", await askService(given.config, context));
}

/** Asks the service for the network's size, which needs the secrets of the configuration. */
async function askService(file: string, { env, version, stop }: CommandContext): Promise<NetworkSize> {
  const read = readConfig(file, env);
  if (!read.ok) throw new CommandFailure([...read.error, "to plan without the service, pass --nodes N --sessions N"]);
  const resources = orFail(openConfigResources(read.value, { clock: systemClock, version }));
  return queryNetworkSize(resources, version, stop).finally(() => closeResources(resources));
}
