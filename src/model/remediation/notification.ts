import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../node.ts";
import type { EpochMs } from "../time.ts";

/** A notification: an alert that begins and ends, as in Alertmanager. */
export interface Notification {
  /**
   * What happened: `episode` began or ended; `step`: a notify step was reached; `given_up`; `lost`: a node left the list
   * after an action; `overdue`; `incident`: many nodes of one place went bad together; `storm`; `breaker`; `untrusted`;
   * `credentials`: the service refuses the API key for actions; `efficacy`; `approval`: an operator is wanted.
   */
  readonly kind: NotificationKind;
  /** Equal for the beginning and the end of the same thing. */
  readonly key: string;
  readonly severity: "info" | "warning" | "critical";
  /** One sentence. */
  readonly summary: string;
  readonly policy: string | null;
  readonly node: NodeId | null;
  readonly episode: string | null;
  readonly region: string | null;
  readonly startsAt: EpochMs;
  /** Null: it lasts until a notification with the same key ends it. Kinds that don't last need no end. */
  readonly endsAt: EpochMs | null;
}

/** The kinds of {@link Notification}. */
export const NOTIFICATION_KINDS = [
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
 * Kinds that last until a second notification ends them. All others are sent once: they are about a moment, or about something
 * that an operator ends.
 */
const RESOLVABLE_KINDS: ReadonlySet<NotificationKind> = new Set([
  "episode",
  "incident",
  "storm",
  "breaker",
  "untrusted",
  "credentials",
]);

/** Whether a notification is about something that still lasts. */
export const isActive = ({ kind, endsAt }: Notification): boolean => endsAt === null && RESOLVABLE_KINDS.has(kind);

/** A receiver of notifications. Each call is one attempt; the caller retries. Never rejects. */
export interface Receiver {
  readonly name: string;
  /** How often to repeat what lasts, so that the receiver does not resolve it; absent: never. */
  readonly repeatMs?: DurationMs;
  send(notifications: readonly Notification[], signal: AbortSignal): Promise<DeliveryResult>;
}

/** How a sending went. `isFinal`: the receiver refused what was sent, and another try would be refused as well. */
export type DeliveryResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly error: string; readonly isFinal: boolean };
