import type { FailureReason } from "../metrics/vocabulary.ts";

/**
 * Why a call, or a whole walk, brought nothing. The kinds are the values of the label `reason` of
 * `proxywarden_collect_failures_total`; the message is for people and never holds a secret.
 */
export interface ServiceError {
  readonly kind: ServiceErrorKind;
  readonly message: string;
}

/** `aborted`: we gave the call up ourselves, which is no failure and counted nowhere. */
export type ServiceErrorKind = Exclude<FailureReason, "internal"> | "aborted";

/** Shows foreign text in a message: quoted, escaped, and short. */
export function excerpt(text: string, charactersMax = 80): string {
  const cut = text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
  return JSON.stringify(cut);
}
