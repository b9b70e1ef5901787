import type { FailureReason } from "../model/label-values.ts";

/**
 * Why a call, or a whole walk, brought nothing. The kinds are the values of the label `reason` of
 * `proxywarden_collect_failures_total`; the message is for people and never holds a secret.
 */
export interface ApiError {
  readonly kind: ApiErrorKind;
  readonly message: string;
}

/** `aborted`: we gave the call up ourselves, which is no failure and counted nowhere. */
export type ApiErrorKind = FailureReason | "aborted";

const EXCERPT_CHARACTERS_MAX = 80;

/** The beginning of a text that may be long: at most `charactersMax` characters of it. */
export const truncate = (text: string, charactersMax = EXCERPT_CHARACTERS_MAX): string =>
  text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;

/** Shows foreign text in a message: short, quoted and escaped. */
export const excerpt = (text: string): string => JSON.stringify(truncate(text));

const PERMANENT_ERRORS: ReadonlySet<ApiError["kind"]> = new Set([
  "rate_limited",
  "budget",
  "unauthorized",
  "forbidden",
  "redirected",
  "aborted",
]);

/** Whether another call of the same kind would fare no better after this error, or cost calls that are not there. */
export const isPermanent = ({ kind }: ApiError): boolean => PERMANENT_ERRORS.has(kind);

/** Shows a JSON value in a message: as JSON, and short. Undefined is `missing`. */
export function describeJson(value: unknown): string {
  if (value === undefined) return "missing";
  try {
    return truncate(JSON.stringify(value));
  } catch {
    // JSON.parse reads any depth, and JSON.stringify overflows the stack after some thousands of levels.
    return `${Array.isArray(value) ? "a list" : "an object"} that is nested too deeply to be shown`;
  }
}

/** Whether the service answered that there is no such thing, or that it does not take such a request. */
export const isRequestRejected = ({ kind }: ApiError): boolean => kind === "client_error" || kind === "not_found";
