import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Fault, FaultKind } from "../../../src/config/schema/scenario.ts";
import type { RandomChoices } from "../runs/random-choices.ts";

/** Faults of one of several instances behind a load balancer. The answers of the others contradict it. */
const INSTANCE_FAULTS: readonly ((choices: RandomChoices) => FaultKind)[] = [
  (choices) => ({ kind: "vanished", missing: choices.pick([0.05, 0.15, 0.5, 1]) }),
  () => ({ kind: "empty_list" }),
  () => ({ kind: "stale_last_seen" }),
  (choices) => ({ kind: "bad_records", spoiled: choices.pick([0.05, 0.7]) }),
  (choices) => ({ kind: "bad_details", nodes: 1, answer: choices.pick(["not_found", "unreadable", "server_error"]) }),
  () => ({ kind: "page_ignored", states: "requested" }),
  (choices) => ({ kind: "wrong_date", offsetMs: choices.pick([-1, 1]) * choices.pick([1, 10, 60]) * MINUTE_MS }),
  (choices) => ({
    kind: "limit_headers",
    ...choices.pick([
      { limit: "10" },
      { limit: "1000000", remaining: "999999" },
      { remaining: "50" },
      { reset: "37" },
      { reset: "4102444800" },
    ]),
  }),
  (choices) => ({
    kind: "status",
    status: choices.pick([429, 503]),
    retryAfterDateMs: choices.pick([0, 30, 90]) * 1_000,
  }),
  () => ({ kind: "status", status: 503, retryAfter: "3600" }),
  () => ({ kind: "unsuccessful" }),
];

/** Mean time between the starts of two faults. */
const INSTANCE_FAULT_INTERVAL_MS: DurationMs = 4 * HOUR_MS;

/** Draws faults that affect a share of the requests, most of them for longer than a policy waits. */
export function instanceFaults(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / INSTANCE_FAULT_INTERVAL_MS).map((afterMs): Fault => {
    const forMs = Math.min(choices.ms(MINUTE_MS, choices.pick([HOUR_MS, 3 * HOUR_MS])), untilMs - afterMs);
    const share = choices.pick([0.05, 0.2, 0.5]);
    return { afterMs, forMs, match: "GET /v1", share, fault: choices.pick(INSTANCE_FAULTS)(choices) };
  });
}

/** Answers to actions that say nothing, or the wrong thing, about whether they were executed. */
const ACTION_ANSWERS: readonly FaultKind[] = [
  { kind: "status", status: 500, executed: true },
  { kind: "status", status: 504, executed: true },
  // A load balancer sent it to two instances.
  { kind: "status", status: 409, executed: true },
  { kind: "status", status: 408 },
  { kind: "status", status: 404 },
  { kind: "unsuccessful" },
  { kind: "html" },
];

const ACTION_ANSWER_INTERVAL_MS: DurationMs = 4 * HOUR_MS;

/** Draws such answers to all actions, or to half of them. */
export function answeredActions(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly Fault[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / ACTION_ANSWER_INTERVAL_MS).map((afterMs): Fault => {
    const forMs = Math.min(choices.ms(10 * MINUTE_MS, 3 * HOUR_MS), untilMs - afterMs);
    return {
      afterMs,
      forMs,
      match: "POST /v1/nodes",
      share: choices.pick([1, 0.5]),
      fault: choices.pick(ACTION_ANSWERS),
    };
  });
}
