import { type DurationMs, formatSecondsLeft, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { oncePerKey, oncePerObject } from "../../base/once-per-key.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { DecisionContext, ServiceContext } from "../context.ts";

type ReportsContext = DecisionContext & Pick<ServiceContext, "client">;

/** Precision of the service's time, because a Date is in whole seconds. */
const DATE_PRECISION_MS: DurationMs = SECOND_MS;
/** A last_seen that is ahead of the service's time by more than this only shows that its node's clock is ahead. */
const AHEAD_MS_MAX: DurationMs = MINUTE_MS;
/** After this time, responses count even without newer reports, because no cache keeps a response for so long. */
const REPORT_DELAY_MS_MAX: DurationMs = HOUR_MS;
/** An action is not sent if the last_seen of the read before it is earlier than that of the list by more than this. */
const READ_OLDER_MS_MAX: DurationMs = 2 * MINUTE_MS;

/** Returns a time of the journal on the service's clock, as it was at `at`, or null if that is unknown. */
export function toServiceTime(context: ReportsContext, time: EpochMs, at: MonotonicMs): EpochMs | null {
  const serviceNow = context.client.serviceTime(at);
  return serviceNow === null ? null : serviceNow - (context.remediationState.epochOf(at) - time);
}

/**
 * Returns whether any node has reported since a step was sent, or true if the service's time is unknown. Otherwise the
 * responses since then, as those of a cache, may be older than the step. Returns false while the Date of the response that
 * listed the node contradicts earlier ones and no later response has shown which are right.
 */
export function hasReportsSince(context: ReportsContext, sentAt: EpochMs, slot: number): boolean {
  const { observed, remediationState, client, clock } = context;
  const listedAt = observed.fleet.listedAt.at(slot);
  const since = toServiceTime(context, sentAt, listedAt);
  if (since === null) return client.serviceTime(clock.monotonic()) === null;
  if (remediationState.epochOf(listedAt) - sentAt > REPORT_DELAY_MS_MAX) return true;
  return latestReportAt(context) > since + DATE_PRECISION_MS;
}

/**
 * Returns whether a node has reported since a step was sent, or true if its last report or the service's time is unknown.
 * A last_seen that is ahead of the service's time does not show it.
 */
export function mayHaveReported(context: ReportsContext, sentAt: EpochMs, slot: number): boolean {
  const { lastSeenMs, listedAt } = context.observed.fleet;
  const [lastSeen, at] = [lastSeenMs.at(slot), listedAt.at(slot)];
  const since = toServiceTime(context, sentAt, at);
  if (since === null || Number.isNaN(lastSeen)) return true;
  return lastSeen >= since && lastSeen <= context.client.serviceTime(at)! + AHEAD_MS_MAX;
}

/** Returns whether the detail of a node is from before a step was sent, although the list shows a later report. */
export function isDetailOlder(context: ReportsContext, sentAt: EpochMs, slot: number): boolean {
  const { detailLastSeenMs, lastSeenMs, listedAt } = context.observed.fleet;
  const since = (toServiceTime(context, sentAt, listedAt.at(slot)) ?? Number.NaN) + DATE_PRECISION_MS;
  return detailLastSeenMs.at(slot) <= since && lastSeenMs.at(slot) > since;
}

/**
 * Returns why the read of a node may not show its current state, or null if it can be used. If the node is down and has
 * not reported for {@link REPORT_DELAY_MS_MAX} by the list either, no cache has kept the read: the details of the service
 * lag. The last_seen of a node that is up may also be that old because its clock is behind.
 */
export function outdatedReadProblem({ client, clock, observed }: ReportsContext, slot: number): string | null {
  const { detailLastSeenMs, lastSeenMs } = observed.fleet;
  const lastSeen = lastSeenMs.at(slot);
  const olderMs = lastSeen - detailLastSeenMs.at(slot);
  const status = observed.statusAt(slot);
  const isDown = status === "offline" || status === "rebooting";
  const unseenMs = (client.serviceTime(clock.monotonic()) ?? Number.NaN) - lastSeen;
  return olderMs > READ_OLDER_MS_MAX && !(isDown && unseenMs > REPORT_DELAY_MS_MAX)
    ? `the service returned an old record of the node, as a cache does: its last_seen is ${formatSecondsLeft(olderMs)} before that of the list`
    : null;
}

const latestReports = new WeakMap<Fleet, EpochMs>();

/** Returns the latest last_seen of the fleet, on the service's clock, or -Infinity if no node has one. */
function latestReportAt({ client, clock, observed: { fleet } }: ReportsContext): EpochMs {
  const known = latestReports.get(fleet);
  if (known !== undefined) return known;
  const max = (client.serviceTime(clock.monotonic()) ?? Number.POSITIVE_INFINITY) + AHEAD_MS_MAX;
  const times = fleet.lastSeenMs.toArray();
  let latest = Number.NEGATIVE_INFINITY;
  for (let slot = 0; slot < times.length; slot++)
    if (times[slot]! > latest && times[slot]! <= max && fleet.ids[slot] !== "") latest = times[slot]!;
  latestReports.set(fleet, latest);
  return latest;
}

/** Returns the slots of the nodes that were observed at a time, which are those of a page. */
const slotsByTime = oncePerObject(({ ids, listedAt }: Fleet) => {
  const times = listedAt.toArray();
  return oncePerKey((at: MonotonicMs): readonly number[] => {
    const slots: number[] = [];
    for (let slot = times.indexOf(at); slot >= 0; slot = times.indexOf(at, slot + 1))
      if (ids[slot] !== "") slots.push(slot);
    return slots;
  });
});

/**
 * Returns the slots of the nodes on the page of a slot, whether the node in that slot has certainly not reported since
 * `time`, and a function that returns whether another node has. `time` is on the journal's clock.
 */
export function reportsOfPage(context: ReportsContext, slot: number, time: EpochMs) {
  const { fleet } = context.observed;
  const { lastSeenMs, listedAt } = fleet;
  const at = listedAt.at(slot);
  const since = toServiceTime(context, time, at) ?? Number.NaN;
  return {
    page: slotsByTime(fleet)(at),
    isSilent: lastSeenMs.at(slot) < since,
    hasReported: (each: number) => lastSeenMs.at(each) >= since,
  };
}
