import type { NetworkSize } from "../collectors/polling-plan.ts";
import { closeResources, openConfigResources } from "../daemon/config-resources.ts";
import { systemClock } from "../platform/clock.ts";
import { readConfig } from "./config/config-loading.ts";
import { planNetwork } from "./config/plan-warnings.ts";
import {
  type CommandContext,
  CommandFailure,
  type OutputOption,
  orFail,
  orStopped,
  print,
  printWarnings,
} from "./context.ts";
import { type GivenCounts, givenNetworkSize, queryNetworkSize, readStoredState } from "./network-size.ts";
import { formatPlan, planJson } from "./output/plan-table.ts";
import { withProgress } from "./output/progress.ts";

/** Options of `plan`. Absent counts are taken from the daemon's state, or else from the service. */
export interface PlanOptions extends GivenCounts, OutputOption {
  readonly config: string;
}

/** `plan --config FILE`: shows how often each collector polls, how old its data gets, and which limit slows it down. */
export async function runPlan(options: PlanOptions, context: CommandContext): Promise<void> {
  const loaded = orFail(readConfig(options.config, context.env, []));
  const { page_limit: pageLimit } = loaded.config.service;
  const areGiven = options.nodes !== undefined && options.sessions !== undefined;
  const read = await readStoredState(loaded.config, context);
  if (!read.ok) {
    if (!areGiven) throw new CommandFailure([read.error, "to plan without the journal, pass --nodes N --sessions N"]);
    const assumption = `the plan assumes pages of ${pageLimit} records (service.page_limit)`;
    printWarnings(context, [`${read.error.message}; ${assumption}`]);
  }
  const stored = read.ok ? read.value : null;
  const seen = stored?.networkSize ?? null;
  const source = areGiven ? "options" : seen === null ? "service" : "state";
  const known = source === "service" ? await askService(options.config, context) : seen;
  const size = givenNetworkSize(options, known, pageLimit);
  // Unless the size is from the daemon's state, the plan is for a full month, because the calls left in this month are
  // unknown, or the counts are hypothetical.
  const isFullMonth = source !== "state";
  const planned = planNetwork(loaded, size, isFullMonth ? undefined : stored?.month);
  const report = { size, given: options, source, isFullMonth, ...planned } as const;
  print(context, options, planJson(report), () => formatPlan(report));
}

/** Asks the service for the network's size, which requires the secrets of the configuration. */
async function askService(file: string, { env, err, version, stop }: CommandContext): Promise<NetworkSize> {
  const read = readConfig(file, env);
  if (!read.ok) throw new CommandFailure([...read.error, "to plan without the service, pass --nodes N --sessions N"]);
  const resources = orFail(openConfigResources(read.value, { clock: systemClock, version }));
  const size = orStopped(queryNetworkSize(resources, version, stop), stop).finally(() => closeResources(resources));
  return withProgress(`asking ${read.value.config.service.base_url}`, size, { err });
}
