import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../node.ts";
import type { EpochMs } from "../time.ts";

/** A notification, which begins and ends as an alert in Alertmanager does. */
export interface Notification {
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
   * When it ended, or null if it has not. A notification with the same key and an end resolves it. An event has
   * an end only when it is repeated: the time at which its alert expires.
   */
  readonly endsAt: EpochMs | null;
}

/**
 * The kinds of notifications, and whether one lasts until a second notification resolves it. All others are events, or
 * end with an operator's command.
 */
export const IS_RESOLVABLE = {
  /** An episode began or ended. */
  episode: true,
  /** A notify step was reached. */
  step: false,
  /** A policy gave up on a node. */
  given_up: false,
  /** A node left the list, or is down, after an action. */
  lost: false,
  /** A quarantine lasts beyond its end. */
  overdue: false,
  /** There is a correlated failure in one region or country. */
  incident: true,
  /** Too many nodes are unhealthy. */
  storm: true,
  /** The circuit breaker opened. */
  breaker: true,
  /** Fleet data is not trusted. */
  untrusted: true,
  /** The service refuses the API key for actions. */
  credentials: true,
  /** A policy does not heal enough nodes. */
  efficacy: false,
  /** An action waits for an operator. */
  approval: false,
} as const;
export type NotificationKind = keyof typeof IS_RESOLVABLE;

/** Returns whether a notification is about a condition that has not ended, and that a second notification resolves. */
export const isActive = ({ kind, endsAt }: Notification): boolean => endsAt === null && IS_RESOLVABLE[kind];

/** A receiver of notifications. Each call is one attempt; the caller retries. Never rejects. */
export interface Receiver {
  readonly name: string;
  /** How often to repeat notifications, so that the receiver does not resolve or forget them. Absent if never. */
  readonly repeatMs?: DurationMs;
  send(notifications: readonly Notification[], signal: AbortSignal): Promise<DeliveryResult>;
}

/** Result of an attempt. `isFinal` is true if the receiver refused the notifications and would refuse them again. */
export type DeliveryResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly error: string; readonly isFinal: boolean };
