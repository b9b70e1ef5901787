import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import type { HoldReason } from "../../../src/model/remediation/decision.ts";
import { INCIDENT_MS_MAX } from "../../../src/policy/guards/correlated-failure.ts";

/** What bounds are worked out from. */
export interface BoundTerms {
  readonly safety: Safety;
  readonly rule: PolicyRule;
  /** For how long data count as fresh, at most over all that is collected. */
  readonly freshMs: DurationMs;
}

/**
 * How a hold ends once its cause is gone. `time`: by itself, after so long at most. `work`: with the work on other nodes,
 * which goes on. `other`: never by itself; what ends it is judged elsewhere, or is the configuration or a decision of an
 * operator.
 */
export type HoldEnd =
  | { readonly by: "time"; readonly withinMs: (terms: BoundTerms) => DurationMs }
  | { readonly by: "work" | "other" };

/** Orders of the operators come within this, and what they end is over with the next look. */
const OPERATOR_COMMAND_MS: DurationMs = HOUR_MS;
/** As long as a repair by an operator, a maintenance or a reboot takes, and until it is seen to be over. */
const STATUS_MS: DurationMs = HOUR_MS;

const time = (withinMs: (terms: BoundTerms) => DurationMs): HoldEnd => ({ by: "time", withinMs });
const fixed = (ms: DurationMs): HoldEnd => time(() => ms);
const work: HoldEnd = { by: "work" };
const other: HoldEnd = { by: "other" };
/** Two walks, of which the first may have begun before the cause was gone. */
const walks = time(({ freshMs }) => 2 * freshMs);

/** How each hold ends, as the rows of the hold reasons say. The compiler demands one for every reason. */
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
  // Longer than that, and the timer does not fire any more.
  verdict_unknown: time(({ rule, freshMs }) => (rule.maxAgeMs ?? freshMs) + rule.forMs),
  window: fixed(DAY_MS),
  blocked_by: fixed(5 * MINUTE_MS),
  approval: fixed(OPERATOR_COMMAND_MS),
  rejected: other,
  canary: work,
  protected: other,
  held: fixed(OPERATOR_COMMAND_MS),
  // Another policy's episode may go on meanwhile.
  status: time(({ rule }) => STATUS_MS + quarantineMs(rule)),
  ownership: fixed(HOUR_MS),
  vetoed: time(({ rule }) => rule.retry.everyMs),
  // That episode is accounted for by itself.
  other_episode: other,
  cooldown: time(({ safety }) => safety.cooldownMs),
  retry_wait: time(({ rule }) => rule.retry.everyMs),
  // The node is given up, or it ends with `retry.forget_after`.
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

const quarantineMs = ({ steps }: PolicyRule): DurationMs =>
  Math.max(0, ...steps.map((step) => (step.action === "quarantine" ? step.durationMs : 0)));
