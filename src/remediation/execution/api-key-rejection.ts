import { HOUR_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import type { RemediationContext } from "../context.ts";

/** The service refuses our API key for actions. */
export interface ApiKeyRejection {
  /** The service's last refusal. */
  readonly message: string;
  /** When the first action was refused. */
  readonly since: EpochMs;
  /** When an action was refused last. */
  readonly refusedAt: EpochMs;
}

const API_KEY_REJECTION_FACT = "warden.credentials";
/** After a refusal every action is held so long; then one is tried: the key may have been replaced at the service. */
const REJECTION_HOLD_MS = HOUR_MS / 4;
/** Without another refusal for so long no action was wanted: the refusal is over, as far as is known. */
const REJECTION_MEMORY_MS = 2 * HOUR_MS;

/** Returns the refusal that still counts; null: the key is accepted, as far as is known. It survives restarts. */
export function currentKeyRejection({ remediationState }: RemediationContext): ApiKeyRejection | null {
  const text = remediationState.records.fact(API_KEY_REJECTION_FACT);
  const rejection = text === null ? null : (JSON.parse(text) as ApiKeyRejection);
  return rejection === null || remediationState.now() - rejection.refusedAt >= REJECTION_MEMORY_MS ? null : rejection;
}

/** Records that the service refused the key for an action (401 or 403), and holds all actions for a while. */
export function recordKeyRejected(context: RemediationContext, message: string): void {
  const { remediationState, clock } = context;
  const rejectedAt = remediationState.now();
  const rejection: ApiKeyRejection = {
    message,
    since: currentKeyRejection(context)?.since ?? rejectedAt,
    refusedAt: rejectedAt,
  };
  context.keyRejection = { message, until: clock.monotonic() + REJECTION_HOLD_MS };
  remediationState.record([{ kind: "fact", key: API_KEY_REJECTION_FACT, value: JSON.stringify(rejection) }]);
}

/** Records that the service accepted the key for an action. */
export function recordKeyAccepted(context: RemediationContext): void {
  context.keyRejection = null;
  if (context.remediationState.records.fact(API_KEY_REJECTION_FACT) !== null)
    context.remediationState.record([{ kind: "fact", key: API_KEY_REJECTION_FACT, value: null }]);
}
