import { DAY_MS, formatDuration } from "../../base/duration.ts";
import { requestedIntervalsOf } from "../../collectors/schedule.ts";
import type { SkippedRuns } from "../../config/checks.ts";
import type { Config } from "../../config/schema/config.ts";
import { collectionSettingsOf, limitsOf } from "../../daemon/collection-settings.ts";
import { COLLECTORS } from "../../model/snapshot.ts";
import { createSystemClock } from "../../platform/clock.ts";
import { createCron } from "../../platform/cron.ts";
import { planPolling } from "../../scheduling/planner.ts";
import { BOUND_TEXTS, skippedText } from "../output/plan-table.ts";

/** Cron schedules that the limits don't carry even if the network is so small that each run takes one call. */
export function findSkippedRuns(config: Config): readonly SkippedRuns[] {
  const { schedules: cadences } = collectionSettingsOf(config, new Set(COLLECTORS), new Set());
  const wishes = requestedIntervalsOf(cadences, { clock: createSystemClock(), cron: createCron() });
  const planned = planPolling({
    requestedIntervals: wishes,
    limits: limitsOf(config),
    ...{ nodes: 0, nodePages: 0, sessionPages: 0 },
    month: { callsUsed: 0, leftMs: 30 * DAY_MS },
  });
  return COLLECTORS.flatMap((collector): SkippedRuns[] => {
    const { boundBy = null, slowdown: stretch = 1, requestedMs: wishMs = 0 } = planned[collector] ?? {};
    if (collector === "details" || boundBy === null || wishes[collector]?.isCron !== true) return [];
    const message = `runs every ${formatDuration(wishMs)}, which ${BOUND_TEXTS[boundBy]} don't allow: ${skippedText(stretch)} are skipped, and more where a run takes more than one call`;
    return [{ collector, message }];
  });
}
