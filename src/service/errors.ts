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
export type ServiceErrorKind = FailureReason | "aborted";

const EXCERPT_CHARACTERS_MAX = 80;

/** The beginning of a text that may be long. */
export const clip = (text: string): string =>
  text.length > EXCERPT_CHARACTERS_MAX ? `${text.slice(0, EXCERPT_CHARACTERS_MAX)}…` : text;

/** Shows foreign text in a message: short, quoted and escaped. */
export const excerpt = (text: string): string => JSON.stringify(clip(text));

const HOPELESS: ReadonlySet<ServiceError["kind"]> = new Set([
  "rate_limited",
  "budget",
  "unauthorized",
  "forbidden",
  "redirected",
  "aborted",
]);

/** Whether another call of the same kind would fare no better after this error, or cost calls that are not there. */
export const isHopeless = ({ kind }: ServiceError): boolean => HOPELESS.has(kind);

/** Shows a JSON value in a message: as JSON, and short. Undefined is `missing`. */
export const describe = (value: unknown): string => (value === undefined ? "missing" : clip(JSON.stringify(value)));

/** Whether the service answered that there is no such thing, or that it does not take such a request. */
export const isRefusal = ({ kind }: ServiceError): boolean => kind === "client_error" || kind === "not_found";
