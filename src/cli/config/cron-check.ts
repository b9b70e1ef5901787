import { DAY_MS, formatDuration } from "../../base/duration.ts";
import { plan } from "../../scheduling/planner.ts";
import type { SkippedRuns } from "../../config/checks.ts";
import type { Config } from "../../config/schema/config.ts";
import { wishesOf } from "../../collectors/schedule.ts";
import { COLLECTORS } from "../../model/snapshot.ts";
import { limitsOf, watchSettingsOf } from "../../daemon/collection-settings.ts";
import { createBell } from "../../platform/cron.ts";
import { createSystemClock } from "../../platform/clock.ts";
import { bounds, skippedText } from "../output/plan-table.ts";

/** Cron schedules that the limits don't carry even if the network is so small that each run takes one call. */
export function skippedRuns(config: Config): readonly SkippedRuns[] {
  const { cadences } = watchSettingsOf(config, new Set(COLLECTORS), new Set());
  const wishes = wishesOf(cadences, { clock: createSystemClock(), bell: createBell() });
  const planned = plan({
    wishes,
    limits: limitsOf(config),
    ...{ nodes: 0, nodePages: 0, sessionPages: 0 },
    month: { used: 0, leftMs: 30 * DAY_MS },
  });
  return COLLECTORS.flatMap((collector): SkippedRuns[] => {
    const { boundBy = null, stretch = 1, wishMs = 0 } = planned[collector] ?? {};
    if (collector === "details" || boundBy === null || wishes[collector]?.rung !== true) return [];
    const message = `runs every ${formatDuration(wishMs)}, which ${bounds[boundBy]} don't allow: ${skippedText(stretch)} are skipped, and more where a run takes more than one call`;
    return [{ collector, message }];
  });
}
