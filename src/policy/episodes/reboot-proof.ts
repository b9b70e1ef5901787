import { HOUR_MS } from "../../base/duration.ts";
import type { RebootProof } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

/** What is known of a reboot, before and after it was sent. Instants are on the service's clock. */
export interface RebootEvidence {
  readonly uptimeHoursBefore: number | null;
  readonly uptimeHoursNow: number | null;
  readonly rebootingSeen: boolean;
  /** When the record with the uptime of now was observed; null where the service's time is unknown. */
  readonly observedAt: EpochMs | null;
  readonly postedAt: EpochMs | null;
}

/**
 * What shows that a reboot took place. Uptime is in whole hours (spec, section 2.1), so that a boot is known to an hour:
 * it surely lies after the POST only where even the earliest that the hours allow does.
 */
export function rebootProof({ uptimeHoursBefore, uptimeHoursNow, ...evidence }: RebootEvidence): RebootProof {
  const { rebootingSeen, observedAt, postedAt } = evidence;
  // A record from before the POST knows nothing of it.
  const isAfter = observedAt === null || postedAt === null || observedAt > postedAt;
  const uptime = isAfter ? uptimeHoursNow : null;
  if (uptimeHoursBefore !== null && uptime !== null && uptime < uptimeHoursBefore) return "uptime_fell";
  if (rebootingSeen) return "rebooting_seen";
  if (uptime === null || observedAt === null || postedAt === null) return "none";
  const earliestBoot = observedAt - (uptime + 1) * HOUR_MS;
  return earliestBoot > postedAt ? "boot_after_post" : "none";
}
