import type { NetworkSize } from "../collectors/polling-plan.ts";
import { closeResources, openConfigResources } from "../daemon/config-resources.ts";
import { systemClock } from "../platform/clock.ts";
import { readConfig } from "./config/config-loading.ts";
import { planNetwork } from "./config/plan-warnings.ts";
import { type CommandContext, CommandFailure, type OutputOption, orFail, print } from "./context.ts";
import {
  type CountSource,
  type GivenCounts,
  givenNetworkSize,
  queryNetworkSize,
  readStoredState,
  type StoredState,
} from "./network-size.ts";
import { formatPlan, planJson } from "./output/plan-table.ts";

/** Options of `plan`. Absent counts are taken from the daemon's state, or else from the service. */
export interface PlanOptions extends GivenCounts, OutputOption {
  readonly config: string;
}

/** `plan --config FILE`: shows how often each collector polls, how old its data gets, and which limit slows it down. */
export async function runPlan(options: PlanOptions, context: CommandContext): Promise<void> {
  const loaded = orFail(readConfig(options.config, context.env, []));
  const stored = orFail(await readStoredState(loaded.config));
  const { known, source } = await knownSize(options, stored, context);
  const size = givenNetworkSize(options, known, loaded.config.service.page_limit);
  // Unless the size is from the daemon's state, the plan is for a full month, because the calls left in this month are
  // unknown, or the counts are hypothetical.
  const isFullMonth = source !== "state";
  const planned = planNetwork(loaded, size, isFullMonth ? undefined : stored.month);
  const report = { size, given: options, source, isFullMonth, ...planned };
  print(context, options, planJson(report), () => formatPlan(report));
}

/** Returns the counts that replace those not given, or null if none are known, and their source. */
async function knownSize(
  given: PlanOptions,
  { networkSize: seen }: StoredState,
  context: CommandContext,
): Promise<{ readonly known: NetworkSize | null; readonly source: CountSource }> {
  if (given.nodes !== undefined && given.sessions !== undefined) return { known: seen, source: "options" };
  if (seen !== null) return { known: seen, source: "state" };
  return { known: await askService(given.config, context), source: "service" };
}

/** Asks the service for the network's size, which requires the secrets of the configuration. */
async function askService(file: string, { env, version, stop }: CommandContext): Promise<NetworkSize> {
  const read = readConfig(file, env);
  if (!read.ok) throw new CommandFailure([...read.error, "to plan without the service, pass --nodes N --sessions N"]);
  const resources = orFail(openConfigResources(read.value, { clock: systemClock, version }));
  return queryNetworkSize(resources, version, stop).finally(() => closeResources(resources));
}
