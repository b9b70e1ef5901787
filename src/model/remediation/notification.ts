import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../node.ts";
import type { EpochMs } from "../time.ts";

/** What is told to people: an alert that begins and ends, as Alertmanager's do. */
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
  /** Null: it lasts until a notice of the same key tells its end; of a kind that doesn't last: it is over once said. */
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
 * Kinds that last until their end is told. All others are told once, and nobody need tell an end: they are about a
 * moment, or about what a person ends without us. An end that is told of one all the same is passed on.
 */
const RESOLVABLE_KINDS: ReadonlySet<NotificationKind> = new Set([
  "episode",
  "incident",
  "storm",
  "breaker",
  "untrusted",
  "credentials",
]);

/** Whether what the notice tells lasts, for all that it says. */
export const isActive = ({ kind, endsAt }: Notification): boolean => endsAt === null && RESOLVABLE_KINDS.has(kind);

/** Where notices go. Each is tried once a call: whoever calls keeps the bounds of retries. Never rejects. */
export interface Receiver {
  readonly name: string;
  /** What lasts is to be told again this often, or the receiver takes it for over; absent: once is enough. */
  readonly repeatMs?: DurationMs;
  send(notifications: readonly Notification[], signal: AbortSignal): Promise<DeliveryResult>;
}

/** How a sending went. `isFinal`: the receiver refused what was sent, and another try would be refused as well. */
export type DeliveryResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly error: string; readonly isFinal: boolean };
