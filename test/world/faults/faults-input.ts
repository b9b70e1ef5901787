import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault, FaultKind } from "../../../src/model/scenario.ts";
import type { Draw } from "../runs/random-choices.ts";

/** Faults of requests: of the network, of a gateway, of the service's answers. */
const REQUEST_FAULTS: readonly ((draw: Draw) => FaultKind)[] = [
  (draw) => ({ kind: "status", status: draw.one([500, 502, 503, 504, 404, 400]) }),
  (draw) => ({ kind: "status", status: draw.one([502, 503]), bare: true, retryAfter: draw.one(["5", "120", "soon"]) }),
  (draw) => ({ kind: "status", status: draw.one([401, 403]) }),
  (draw) => ({ kind: "status", status: 429, bare: true, retryAfter: draw.one(["0", "1", "30"]) }),
  (draw) => ({ kind: "gateway_limit", requestsPerMinute: draw.one([10, 30, 60]), burst: draw.one([5, 20]) }),
  (draw) => ({ kind: "limit_headers", ...draw.one([{ remaining: "none" }, { limit: "0" }, { reset: "0" }]) }),
  () => ({ kind: "hang" }),
  () => ({ kind: "reset" }),
  () => ({ kind: "truncate" }),
  () => ({ kind: "lost_reply" }),
  () => ({ kind: "lost_reply" }),
  () => ({ kind: "bad_json" }),
  () => ({ kind: "html" }),
  () => ({ kind: "wrong_shape" }),
  () => ({ kind: "redirect", location: "https://elsewhere.invalid/" }),
  (draw) => ({ kind: "slow_drip", bytesPerSecond: draw.one([50, 2_000, 20_000]) }),
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

/** Faults of what the service knows, lists and tells. */
const SERVICE_FAULTS: readonly ((draw: Draw) => Pick<Fault, "fault" | "match">)[] = [
  (draw) => ({ fault: { kind: "vanished", share: draw.one([0.02, 0.15, 0.5, 0.9]) } }),
  () => ({ fault: { kind: "empty_list" } }),
  () => ({ fault: { kind: "stale_last_seen" } }),
  (draw) => ({
    fault: { kind: "region_dark", region: draw.one(["us-east", "eu-west", "us-west", "ap-south", "eu-south"]) },
  }),
  (draw) => ({
    fault: {
      kind: "clock_skew",
      skewMs: draw.one([-1, 1]) * draw.one([2 * SECOND_MS, 5 * MINUTE_MS, 26 * HOUR_MS]),
    },
  }),
  (draw) => ({ fault: { kind: "bad_records", share: draw.one([0.02, 0.05, 0.2, 0.7]) } }),
  (draw) => ({
    fault: {
      kind: "bad_details",
      share: draw.one([0.05, 0.3, 1]),
      answer: draw.one(["not_found", "unreadable", "server_error"]),
    },
  }),
  (draw) => ({ fault: { kind: "duplicates", records: draw.one([1, 10]) } }),
  (draw) => ({ fault: { kind: "page_ignored", states: draw.one(["requested", "first"]) } }),
  () => ({ fault: { kind: "many_labels", values: 50 }, match: "/v1/sessions" }),
];

/** How often a fault begins, and how long it lasts. */
const EVERY_MS: DurationMs = 100 * MINUTE_MS;
const LASTS_MS_MIN: DurationMs = MINUTE_MS;
const LASTS_MS_MAX: DurationMs = 40 * MINUTE_MS;

/** Actions are rare: they get faults of their own, which last longer. */
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
const ACTION_EVERY_MS: DurationMs = 5 * HOUR_MS;
const ACTION_LASTS_MS_MAX: DurationMs = 2 * HOUR_MS;

/** Draws the script of faults that begin at `fromMs` or later; all of them are over at `untilMs`. */
export function drawFaults(draw: Draw, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  const times = (everyMs: DurationMs) => draw.times(fromMs, untilMs, (untilMs - fromMs) / everyMs);
  const lasting = (afterMs: DurationMs, mostMs: DurationMs) =>
    Math.min(draw.ms(LASTS_MS_MIN, mostMs), untilMs - afterMs);
  const faults = times(EVERY_MS).map((afterMs) => drawFault(draw, afterMs, lasting(afterMs, LASTS_MS_MAX)));
  const ofActions = times(ACTION_EVERY_MS).map((afterMs): Fault => {
    const forMs = lasting(afterMs, ACTION_LASTS_MS_MAX);
    return { afterMs, forMs, share: draw.one([1, 0.5]), fault: draw.one(ACTION_FAULTS), match: "POST /v1/nodes" };
  });
  return [...faults.filter(standsAlone), ...ofActions];
}

function drawFault(draw: Draw, afterMs: DurationMs, forMs: DurationMs): Fault {
  if (draw.chance(0.5)) return { afterMs, forMs, ...draw.one(SERVICE_FAULTS)(draw) };
  const match = draw.one(MATCHES);
  const share = draw.one([1, 1, 0.5, 0.1]);
  return { afterMs, forMs, share, fault: draw.one(REQUEST_FAULTS)(draw), ...(match === undefined ? {} : { match }) };
}

/** Of two faults of one kind at once only one has an effect. */
const standsAlone = ({ fault, afterMs }: Fault, index: number, all: readonly Fault[]): boolean =>
  !all.slice(0, index).some((each) => each.fault.kind === fault.kind && each.afterMs + each.forMs > afterMs);
