import { type Access, prepareAccess } from "../daemon/active-config.ts";
import { DAY_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { planMonth } from "../rate-limit/billing-month.ts";
import type { MonthState } from "../rate-limit/monthly-budget.ts";
import { plan as planOf } from "../scheduling/planner.ts";
import type { Extent } from "../collectors/polling-plan.ts";
import { wishesOf } from "../collectors/schedule.ts";
import type { WatchSettings } from "../collectors/collector-manager.ts";
import { createBell } from "../platform/cron.ts";
import { createSystemClock } from "../platform/clock.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";
import { askExtent, type Past, pastOf, type Told, toldExtent } from "./network-size/network-size.ts";
import { type Planned, planJson, planText, type Source } from "./output/plan-table.ts";

/** Options of `plan`: how much there is to be polled; absent: as the daemon saw it last, or as the service says. */
export interface PlanOptions extends Told {
  readonly config: string;
  readonly output: "text" | "json";
}

const WHOLE_MONTH: MonthState = { used: 0, leftMs: 30 * DAY_MS };

/** `plan --config FILE`: what will be polled how often, how old the data will be, what was stretched, and why. */
export async function plan(options: PlanOptions, context: CommandContext): Promise<ExitCode> {
  const planned = await planNetwork(options, context);
  if (!planned.ok) {
    context.err.write(planned.error.map((problem) => `proxywarden: ${problem}\n`).join(""));
    return EXIT_BAD;
  }
  context.out.write(options.output === "json" ? planJson(planned.value) : planText(planned.value));
  return EXIT_FINE;
}

async function planNetwork(options: PlanOptions, context: CommandContext): Promise<Result<Planned, readonly string[]>> {
  const read = readConfigFile(options.config, context.env);
  if (!read.ok) return read;
  const clock = createSystemClock();
  const access = prepareAccess(read.value, { clock, readFile: readTextFile, version: context.version });
  if (!access.ok) return access;
  const { settings, transport, relations } = access.value;
  try {
    const past = pastOf(read.value.config, clock.now());
    if (!past.ok) return past;
    const known = await knownExtent(options, past.value, access.value, context);
    if (!known.ok) return known;
    const { extent, source } = known.value;
    const { limits, reads, cadences } = settings;
    const wishes = wishesOf(cadences, { clock, bell: createBell() });
    // Without a daemon's past it is not about this month: a month that begins late would have far more to spend.
    const isWholeMonth = source !== "state";
    const input = {
      ...extent,
      wishes,
      limits,
      reads,
      month: isWholeMonth ? WHOLE_MONTH : monthLeft(past.value, settings),
    };
    return ok({ extent, source, input, isWholeMonth, plan: planOf(input) });
  } finally {
    await Promise.all([transport.close(), relations.close()]);
  }
}

function monthLeft({ used }: Past, { monthStartsOn }: WatchSettings): MonthState {
  const now = createSystemClock().now();
  return { used, leftMs: planMonth(now, monthStartsOn).endMs - now };
}

async function knownExtent(
  told: PlanOptions,
  { extent: seen }: Past,
  access: Access,
  { version, stop }: CommandContext,
): Promise<Result<{ readonly extent: Extent; readonly source: Source }, readonly string[]>> {
  const { pageLimit } = access.settings;
  if (told.nodes !== undefined && told.sessions !== undefined) {
    return ok({ extent: toldExtent(told, seen, pageLimit), source: "options" });
  }
  if (seen !== null) return ok({ extent: toldExtent(told, seen, pageLimit), source: "state" });
  const asked = await askExtent(access, `proxywarden/${version}`, stop);
  return asked.ok ? ok({ extent: toldExtent(told, asked.value, pageLimit), source: "service" }) : fail(asked.error);
}
