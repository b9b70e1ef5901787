import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Clock } from "../../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { RemediationState } from "../state/journaled-state.ts";

/** The service rejects our API key for actions. */
interface ApiKeyRejection {
  /** The error of the last rejected action, or of the read before it. */
  readonly message: string;
  /** When the first action was rejected. */
  readonly since: EpochMs;
  /** When the last action was rejected. */
  readonly refusedAt: EpochMs;
}

const API_KEY_REJECTION_FACT = "remediation.api_key_rejection";
/** A rejection holds all actions for this long. Then one is tried, because the key may have been replaced. */
export const REJECTION_HOLD_MS: DurationMs = 15 * MINUTE_MS;
/**
 * A rejection is forgotten this long after the last one if no action was needed since. The 403s of one node are forgotten
 * this long after the last of them, because the key that was accepted for other nodes may have been replaced.
 */
const REJECTION_MEMORY_MS: DurationMs = 2 * HOUR_MS;

/** Tracks whether the service accepts the API key for actions. */
export class ApiKeyStatus {
  readonly #state: RemediationState;
  readonly #clock: Clock;
  #hold: { readonly message: string; readonly until: MonotonicMs } | null = null;
  /** When an action was last accepted. */
  #acceptedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  /** When an action was first and last answered with 403, by node, unless one on the node was accepted since. */
  readonly #forbidden = new Map<NodeId, { readonly firstAt: MonotonicMs; readonly lastAt: MonotonicMs }>();

  constructor(state: RemediationState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Returns why all actions are held, or null if they are not. */
  holdReason(): string | null {
    return this.#hold !== null && this.#clock.monotonic() < this.#hold.until ? this.#hold.message : null;
  }

  /** Returns the rejection that still counts, or null if there is none. It is kept over a restart. */
  rejection(): ApiKeyRejection | null {
    const rejection = this.#state.records.jsonFact<ApiKeyRejection>(API_KEY_REJECTION_FACT);
    return rejection !== null && this.#state.now() - rejection.refusedAt < REJECTION_MEMORY_MS ? rejection : null;
  }

  /**
   * Records that the service rejected the key for an action on a node, with 403 if `isForbidden` and otherwise 401.
   * Holds all actions for {@link REJECTION_HOLD_MS}, unless an action was accepted since the first 403 for this node. Then
   * only this node is forbidden.
   */
  recordRejected(node: NodeId, message: string, isForbidden: boolean): void {
    if (isForbidden && this.#recordForbidden(node) < this.#acceptedAt) return;
    const now = this.#state.now();
    const rejection: ApiKeyRejection = { message, since: this.rejection()?.since ?? now, refusedAt: now };
    this.#hold = { message, until: this.#clock.monotonic() + REJECTION_HOLD_MS };
    this.#state.record([{ kind: "fact", key: API_KEY_REJECTION_FACT, value: JSON.stringify(rejection) }]);
  }

  /** Records a 403 for a node, and returns when the first of those that still count was received. */
  #recordForbidden(node: NodeId): MonotonicMs {
    const now = this.#clock.monotonic();
    for (const [id, { lastAt }] of this.#forbidden) if (now - lastAt >= REJECTION_MEMORY_MS) this.#forbidden.delete(id);
    const firstAt = this.#forbidden.get(node)?.firstAt ?? now;
    this.#forbidden.set(node, { firstAt, lastAt: now });
    return firstAt;
  }

  /** Records that the service accepted the key for an action on a node. */
  recordAccepted(node: NodeId): void {
    this.#hold = null;
    this.#acceptedAt = this.#clock.monotonic();
    this.#forbidden.delete(node);
    if (this.#state.records.fact(API_KEY_REJECTION_FACT) !== null)
      this.#state.record([{ kind: "fact", key: API_KEY_REJECTION_FACT, value: null }]);
  }
}
