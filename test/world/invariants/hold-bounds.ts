import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import type { HoldReason } from "../../../src/policy/decision.ts";
import { INCIDENT_MS_MAX } from "../../../src/policy/guards/correlated-failure.ts";

/** Inputs of the bounds. */
export interface BoundInput {
  readonly safety: Safety;
  readonly spec: PolicySpec;
  /** The longest time, over all collectors, for which data count as fresh. */
  readonly freshMs: DurationMs;
}

/**
 * How a hold ends once its cause has ended. `time`: within a bounded time. `work`: when actions on other nodes
 * complete. `other`: by another invariant, a change of the configuration or a decision of an operator.
 */
export type HoldEnd =
  | { readonly by: "time"; readonly withinMs: (input: BoundInput) => DurationMs }
  | { readonly by: "work" | "other" };

/** The longest time until an operator has sent a command and the daemon has evaluated again. */
const OPERATOR_COMMAND_MS: DurationMs = HOUR_MS;
/** The longest repair, maintenance or reboot, including the time until it is observed. */
const STATUS_MS: DurationMs = HOUR_MS;

const time = (withinMs: (input: BoundInput) => DurationMs): HoldEnd => ({ by: "time", withinMs });
const fixed = (ms: DurationMs): HoldEnd => time(() => ms);
const work: HoldEnd = { by: "work" };
const other: HoldEnd = { by: "other" };
/** Two walks: the first may have started before the cause ended. */
const walks = time(({ freshMs }) => 2 * freshMs);

/** How a hold ends, by reason. */
export const HOLD_ENDS: Readonly<Record<HoldReason, HoldEnd>> = {
  paused: fixed(OPERATOR_COMMAND_MS),
  journal: fixed(5 * MINUTE_MS),
  credentials: fixed(20 * MINUTE_MS),
  warming_up: time(({ safety, freshMs }) => safety.trust.warmupWalks * freshMs),
  inventory_incomplete: time(({ freshMs }) => 2 * freshMs + OPERATOR_COMMAND_MS),
  inventory_shrunk: time(({ freshMs }) => 2 * freshMs + OPERATOR_COMMAND_MS),
  inventory_unknown: walks,
  last_seen_stale: walks,
  service_clock: fixed(HOUR_MS + 5 * MINUTE_MS),
  sight_cooldown: time(({ safety }) => safety.stormCooldownMs),
  // After that the timer no longer fires.
  verdict_unknown: time(({ spec, freshMs }) => (spec.maxAgeMs ?? freshMs) + spec.forMs),
  window: fixed(DAY_MS),
  blocked_by: fixed(5 * MINUTE_MS),
  approval: fixed(OPERATOR_COMMAND_MS),
  rejected: other,
  canary: work,
  protected: other,
  held: fixed(OPERATOR_COMMAND_MS),
  // Another policy may have quarantined the node.
  status: time(({ spec }) => STATUS_MS + quarantineMs(spec)),
  ownership: fixed(HOUR_MS),
  vetoed: time(({ spec }) => spec.retry.everyMs),
  // The other episode is checked separately.
  other_episode: other,
  cooldown: time(({ safety }) => safety.cooldownMs),
  retry_wait: time(({ spec }) => spec.retry.everyMs),
  // The node is given up until `retry.forget_after`.
  retry_limit: other,
  backoff: fixed(30 * MINUTE_MS),
  storm: fixed(HOUR_MS),
  storm_cooldown: time(({ safety }) => safety.stormCooldownMs),
  correlated: time(({ safety }) => INCIDENT_MS_MAX + safety.stormCooldownMs),
  breaker: fixed(OPERATOR_COMMAND_MS),
  in_flight: work,
  disrupted: work,
  disrupted_domain: work,
  min_online: other,
  max_actions: work,
};

const quarantineMs = ({ steps }: PolicySpec): DurationMs =>
  Math.max(0, ...steps.map((step) => (step.action === "quarantine" ? step.durationMs : 0)));
