import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../node.ts";
import type { EpochMs } from "../time.ts";

/** A notification, which begins and ends as an alert in Alertmanager does. */
export interface Notification {
  /**
   * - `episode`: an episode began or ended.
   * - `step`: a notify step was reached.
   * - `given_up`: a policy gave up on a node.
   * - `lost`: a node left the list after an action.
   * - `overdue`: a quarantine lasts beyond its end.
   * - `incident`: there is a correlated failure in one region or country.
   * - `storm`: too many nodes are unhealthy.
   * - `breaker`: the circuit breaker opened.
   * - `untrusted`: fleet data is not trusted.
   * - `credentials`: the service refuses the API key for actions.
   * - `efficacy`: a policy does not heal enough nodes.
   * - `approval`: an action waits for an operator.
   */
  readonly kind: NotificationKind;
  /** Identifies what the notification is about: its beginning and its end have the same key. */
  readonly key: string;
  readonly severity: "info" | "warning" | "critical";
  /** One sentence. */
  readonly summary: string;
  readonly policy: string | null;
  readonly node: NodeId | null;
  readonly episode: string | null;
  readonly region: string | null;
  readonly startsAt: EpochMs;
  /**
   * When it ended, or null if it has not. A notification with the same key and an end resolves it. Events need no end.
   */
  readonly endsAt: EpochMs | null;
}

/** The kinds of {@link Notification}. */
const NOTIFICATION_KINDS = [
  "episode",
  "step",
  "given_up",
  "lost",
  "overdue",
  "incident",
  "storm",
  "breaker",
  "untrusted",
  "credentials",
  "efficacy",
  "approval",
] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/**
 * Kinds that last until a second notification resolves them. All others are sent once, because they are events or end
 * with an operator's command.
 */
const RESOLVABLE_KINDS: ReadonlySet<NotificationKind> = new Set([
  "episode",
  "incident",
  "storm",
  "breaker",
  "untrusted",
  "credentials",
]);

/** Returns whether a notification is about a condition that has not ended, and that a second notification resolves. */
export const isActive = ({ kind, endsAt }: Notification): boolean => endsAt === null && RESOLVABLE_KINDS.has(kind);

/** A receiver of notifications. Each call is one attempt; the caller retries. Never rejects. */
export interface Receiver {
  readonly name: string;
  /** How often to repeat active notifications, so that the receiver does not resolve them. Absent if never. */
  readonly repeatMs?: DurationMs;
  send(notifications: readonly Notification[], signal: AbortSignal): Promise<DeliveryResult>;
}

/** Result of an attempt. `isFinal` is true if the receiver refused the notifications and would refuse them again. */
export type DeliveryResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly error: string; readonly isFinal: boolean };
