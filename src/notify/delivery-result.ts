import type { Result } from "../base/result.ts";
import type { DeliveryResult } from "../model/remediation/notification.ts";
import type { EpochMs } from "../model/time.ts";

/** 4xx statuses after which a retry may succeed. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([401, 403, 408, 425, 429]);

/** Result of a delivery by the status of the response. `said`: excerpt of the response for the error. */
export function deliveryResultOf(answer: Result<number, string>, said = ""): DeliveryResult {
  if (!answer.ok) return { ok: false, error: answer.error, isFinal: false };
  const status = answer.value;
  if (status >= 200 && status < 300) return { ok: true };
  const isFinal = status >= 400 && status < 500 && !RETRYABLE_STATUSES.has(status);
  return { ok: false, error: `it answered ${status}${said === "" ? "" : `: ${said}`}`, isFinal };
}

/** Formats a time as ISO 8601 in UTC. */
export const formatIsoTime = (at: EpochMs): string => new Date(at).toISOString();
