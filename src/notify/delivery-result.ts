import type { Result } from "../base/result.ts";
import type { DeliveryResult } from "../model/remediation/notification.ts";
import type { EpochMs } from "../model/time.ts";

/** Statuses that another try may turn into another one: who we are, how much at once, and when. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([401, 403, 408, 425, 429]);

/** What the status of a receiver's answer, or its failure, comes to. `said`: what else it said, for people. */
export function deliveryResultOf(answer: Result<number, string>, said = ""): DeliveryResult {
  if (!answer.ok) return { ok: false, error: answer.error, isFinal: false };
  const status = answer.value;
  if (status >= 200 && status < 300) return { ok: true };
  const isFinal = status >= 400 && status < 500 && !RETRYABLE_STATUSES.has(status);
  return { ok: false, error: `it answered ${status}${said === "" ? "" : `: ${said}`}`, isFinal };
}

/** An instant as receivers read it: ISO 8601 in UTC. */
export const formatIsoTime = (at: EpochMs): string => new Date(at).toISOString();
