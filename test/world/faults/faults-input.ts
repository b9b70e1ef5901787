import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault, FaultKind } from "../../../src/config/schema/scenario.ts";
import { SITES } from "../../../src/simulator/fleet/locations.ts";
import type { RandomChoices } from "../runs/random-choices.ts";

/** The limit headers of the service and those of a gateway. */
const REPEATED_LIMITS = { limit: "1000, 50", remaining: "900, 10" };

/** Faults of single requests: network, gateway and malformed answers. */
const REQUEST_FAULTS: readonly ((choices: RandomChoices) => FaultKind)[] = [
  (choices) => ({ kind: "status", status: choices.pick([500, 502, 503, 504, 404, 400]) }),
  (choices) => ({
    kind: "status",
    status: choices.pick([502, 503]),
    bare: true,
    retryAfter: choices.pick(["5", "120", "soon"]),
  }),
  (choices) => ({ kind: "status", status: choices.pick([401, 403]) }),
  (choices) => ({ kind: "status", status: 429, bare: true, retryAfter: choices.pick(["0", "1", "30", "5, 30"]) }),
  (choices) => ({ kind: "gateway_limit", requestsPerMinute: choices.pick([10, 30, 60]), burst: choices.pick([5, 20]) }),
  (choices) => ({
    kind: "limit_headers",
    ...choices.pick([{ remaining: "none" }, { limit: "0" }, { reset: "0" }, REPEATED_LIMITS]),
  }),
  () => ({ kind: "hang" }),
  () => ({ kind: "reset" }),
  () => ({ kind: "truncate" }),
  () => ({ kind: "lost_reply" }),
  () => ({ kind: "lost_reply" }),
  () => ({ kind: "bad_json" }),
  () => ({ kind: "html" }),
  () => ({ kind: "wrong_shape" }),
  () => ({ kind: "redirect", location: "https://elsewhere.invalid/" }),
  (choices) => ({ kind: "slow_drip", bytesPerSecond: choices.pick([50, 2_000, 20_000]) }),
];

const MATCHES = [
  undefined,
  "GET /v1/nodes",
  "GET /v1/nodes?",
  "GET /v1/nodes/",
  "GET /v1/nodes/",
  "POST /v1/nodes",
  "POST /v1/nodes",
  "/v1/sessions",
];

/** Faults of the data that the service lists and returns. */
const SERVICE_FAULTS: readonly ((choices: RandomChoices) => Pick<Fault, "fault" | "match">)[] = [
  (choices) => ({ fault: { kind: "vanished", missing: choices.pick([0.02, 0.15, 0.5, 0.9]) } }),
  () => ({ fault: { kind: "empty_list" } }),
  () => ({ fault: { kind: "stale_last_seen" } }),
  (choices) => ({
    fault: { kind: "region_dark", region: choices.pick(["us-east", "eu-west", "us-west", "ap-south", "eu-south"]) },
  }),
  (choices) => ({
    fault: {
      kind: "clock_skew",
      skewMs: choices.pick([-1, 1]) * choices.pick([2 * SECOND_MS, 5 * MINUTE_MS, 26 * HOUR_MS]),
    },
  }),
  (choices) => ({ fault: { kind: "bad_records", spoiled: choices.pick([0.02, 0.05, 0.2, 0.7]) } }),
  (choices) => ({
    fault: {
      kind: "bad_details",
      nodes: choices.pick([0.05, 0.3, 1]),
      answer: choices.pick(["not_found", "unreadable", "server_error"]),
    },
  }),
  (choices) => ({ fault: { kind: "duplicates", records: choices.pick([1, 10]) } }),
  (choices) => ({ fault: { kind: "page_ignored", states: choices.pick(["requested", "first"]) } }),
  () => ({ fault: { kind: "many_labels", values: 50 }, match: "/v1/sessions" }),
];

/** Mean time between the starts of two faults. */
const FAULT_INTERVAL_MS: DurationMs = 100 * MINUTE_MS;
const FAULT_DURATION_MS_MIN: DurationMs = MINUTE_MS;
const FAULT_DURATION_MS_MAX: DurationMs = 40 * MINUTE_MS;

/** Actions are rare, so they get separate faults, which last longer. */
const ACTION_FAULTS: readonly FaultKind[] = [
  { kind: "lost_reply" },
  { kind: "lost_reply" },
  { kind: "reset" },
  { kind: "hang" },
  { kind: "truncate" },
  { kind: "status", status: 500 },
  { kind: "status", status: 503, bare: true },
  { kind: "status", status: 429, bare: true },
  { kind: "status", status: 403 },
  { kind: "status", status: 409 },
];
const ACTION_FAULT_INTERVAL_MS: DurationMs = 5 * HOUR_MS;
const ACTION_FAULT_DURATION_MS_MAX: DurationMs = 2 * HOUR_MS;

/** Draws faults that start at `fromMs` or later and end by `untilMs`. */
export function randomFaults(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  const times = (everyMs: DurationMs) => choices.times(fromMs, untilMs, (untilMs - fromMs) / everyMs);
  const lasting = (afterMs: DurationMs, mostMs: DurationMs) =>
    Math.min(choices.ms(FAULT_DURATION_MS_MIN, mostMs), untilMs - afterMs);
  const faults = times(FAULT_INTERVAL_MS).map((afterMs) =>
    randomFault(choices, afterMs, lasting(afterMs, FAULT_DURATION_MS_MAX)),
  );
  const actionFaults = times(ACTION_FAULT_INTERVAL_MS).map((afterMs): Fault => {
    const forMs = lasting(afterMs, ACTION_FAULT_DURATION_MS_MAX);
    return {
      afterMs,
      forMs,
      share: choices.pick([1, 0.5]),
      fault: choices.pick(ACTION_FAULTS),
      match: "POST /v1/nodes",
    };
  });
  return [...faults.filter(isOnlyOfItsKind), ...actionFaults];
}

/** Mean time between the starts of two misleading answers. */
const MISLEADING_INTERVAL_MS: DurationMs = 8 * HOUR_MS;

/** Draws faults whose answers look right and must not be believed: a wrong Date, a lost database, late details. */
export function misleadingFaults(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / MISLEADING_INTERVAL_MS).map((afterMs): Fault => {
    const forMs = Math.min(choices.ms(FAULT_DURATION_MS_MIN, FAULT_DURATION_MS_MAX), untilMs - afterMs);
    const offsetMs = choices.pick([-1, 1]) * choices.pick([MINUTE_MS, HOUR_MS]);
    return choices.pick<Fault>([
      { afterMs, forMs, share: 0.05, fault: { kind: "wrong_date", offsetMs } },
      { afterMs, forMs, fault: { kind: "vanished", missing: 1 } },
      { afterMs, forMs, share: 0.5, match: "GET /v1/nodes/", fault: { kind: "slow_drip", bytesPerSecond: 80 } },
    ]);
  });
}

/** Mean time between the starts of two caches. */
const CACHE_INTERVAL_MS: DurationMs = 8 * HOUR_MS;

/**
 * Draws caches of the list or of details, and outdated replicas, which answer only some requests. Both together would
 * show a consistent older fleet, which only `last_seen` reveals, after `max_freshest_last_seen`.
 */
export function cacheFaults(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / CACHE_INTERVAL_MS).map((afterMs): Fault => {
    const forMs = Math.min(choices.ms(FAULT_DURATION_MS_MIN, 2 * HOUR_MS), untilMs - afterMs);
    const match = choices.pick(["GET /v1/nodes?", "GET /v1/nodes/"]);
    const maxAgeMs = choices.pick([30 * SECOND_MS, 3 * MINUTE_MS, 20 * MINUTE_MS]);
    return { afterMs, forMs, match, share: choices.pick([1, 0.5]), fault: { kind: "cached", maxAgeMs } };
  });
}

/** Mean time between the starts of two lists with nodes that do not exist. */
const PHANTOMS_INTERVAL_MS: DurationMs = 6 * HOUR_MS;

/** Draws lists that show nodes a second time, under ids of their own. Most last for about one walk. */
export function phantomFaults(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / PHANTOMS_INTERVAL_MS).map((afterMs): Fault => {
    const forMs = Math.min(choices.pick([20 * SECOND_MS, MINUTE_MS, MINUTE_MS, 10 * MINUTE_MS]), untilMs - afterMs);
    const fault = { kind: "duplicates", records: choices.pick([3, 40, 10_000]), newIds: true } as const;
    return { afterMs, forMs, match: "GET /v1/nodes?", fault };
  });
}

/** Mean time between the starts of two outages of a region. */
const REGION_OUTAGE_INTERVAL_MS: DurationMs = 6 * HOUR_MS;

const REGIONS = [...new Set(SITES.map(({ region }) => region))];

/** Share of the outages that end and begin again every few minutes. */
const FLAPPING_SHARE = 0.3;

/** Draws outages of regions. Most last longer than a policy waits. Those of small regions do not cause a storm. */
export function regionOutages(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / REGION_OUTAGE_INTERVAL_MS).flatMap((fromMs) => {
    const endMs = Math.min(fromMs + choices.pick([5, 30, 90, 240]) * MINUTE_MS, untilMs);
    const fault = { kind: "region_dark", region: choices.pick(REGIONS) } as const;
    const [downMs, upMs] = choices.chance(FLAPPING_SHARE)
      ? [choices.ms(2 * MINUTE_MS, 12 * MINUTE_MS), choices.ms(MINUTE_MS, 6 * MINUTE_MS)]
      : [endMs - fromMs, 0];
    const faults: Fault[] = [];
    for (let afterMs = fromMs; afterMs < endMs; afterMs += downMs + upMs)
      faults.push({ afterMs, forMs: Math.min(downMs, endMs - afterMs), fault });
    return faults;
  });
}

/** Share of the runs with a fault that lasts for hours. */
const LONG_FAULT_SHARE = 0.4;

const LONG_FAULTS: readonly Pick<Fault, "fault" | "match">[] = [
  { fault: { kind: "status", status: 503, bare: true } },
  { fault: { kind: "status", status: 401 } },
  { fault: { kind: "hang" } },
  { fault: { kind: "status", status: 500 }, match: "POST /v1/nodes" },
  { fault: { kind: "bad_details", nodes: 1, answer: "server_error" } },
  { fault: { kind: "vanished", missing: 0.5 } },
  { fault: { kind: "stale_last_seen" } },
  { fault: { kind: "region_dark", region: "eu-west" } },
  { fault: { kind: "clock_skew", skewMs: -HOUR_MS } },
];

/** Draws, for some runs, a fault that lasts for hours and ends by `untilMs`. */
export function longFaults(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  if (!choices.chance(LONG_FAULT_SHARE)) return [];
  const afterMs = choices.ms(fromMs, untilMs);
  const forMs = Math.min(choices.ms(2 * HOUR_MS, 12 * HOUR_MS), untilMs - afterMs);
  return [{ afterMs, forMs, ...choices.pick(LONG_FAULTS) }];
}

function randomFault(choices: RandomChoices, afterMs: DurationMs, forMs: DurationMs): Fault {
  if (choices.chance(0.5)) return { afterMs, forMs, ...choices.pick(SERVICE_FAULTS)(choices) };
  const match = choices.pick(MATCHES);
  const share = choices.pick([1, 1, 0.5, 0.1]);
  return {
    afterMs,
    forMs,
    share,
    fault: choices.pick(REQUEST_FAULTS)(choices),
    ...(match === undefined ? {} : { match }),
  };
}

/** Returns whether no earlier fault of the same kind is still active: only one of them would have an effect. */
const isOnlyOfItsKind = ({ fault, afterMs }: Fault, index: number, all: readonly Fault[]): boolean =>
  !all.slice(0, index).some((each) => each.fault.kind === fault.kind && each.afterMs + each.forMs > afterMs);
