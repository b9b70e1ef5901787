import { truncate } from "../base/text.ts";
import type { FailureReason } from "../model/label-values.ts";

/**
 * Why a call or a whole walk failed. The kinds are the values of the label `reason` of
 * `proxywarden_collect_failures_total`. The message is for operators and never contains a secret.
 */
export interface ApiError {
  readonly kind: ApiErrorKind;
  readonly message: string;
}

/** `aborted`: canceled by the daemon, which does not count as a failure. */
type ApiErrorKind = FailureReason | "aborted";

/** Formats untrusted text for a message: truncated, quoted and escaped. */
export const excerpt = (text: string): string => JSON.stringify(truncate(text));

const PERMANENT_ERRORS: ReadonlySet<ApiError["kind"]> = new Set([
  "rate_limited",
  "budget",
  "unauthorized",
  "forbidden",
  "redirected",
  "aborted",
]);

/** Returns whether another call of the same kind would fail as well, or use calls that are not available. */
export const isPermanent = ({ kind }: ApiError): boolean => PERMANENT_ERRORS.has(kind);

/** Formats a JSON value for a message, truncated. Undefined becomes `missing`. */
export function describeJson(value: unknown): string {
  if (value === undefined) return "missing";
  try {
    return truncate(JSON.stringify(value));
  } catch {
    // JSON.parse accepts any depth, but JSON.stringify overflows the stack after several thousand levels.
    return `${Array.isArray(value) ? "a list" : "an object"} that is nested too deeply to be shown`;
  }
}

/** Returns whether the service answered that it does not accept the request, or that the resource does not exist. */
export const isRequestRejected = ({ kind }: ApiError): boolean => kind === "client_error" || kind === "not_found";
