import type { Result } from "../base/result.ts";
import type { ReceiverResult } from "../model/remediation/notification.ts";
import type { EpochMs } from "../model/time.ts";

/** Statuses that another try may turn into another one: who we are, how much at once, and when. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 408, 425, 429]);

/** What the status of a receiver's answer, or its failure, comes to. `said`: what else it said, for people. */
export function verdictOf(answer: Result<number, string>, said = ""): ReceiverResult {
  if (!answer.ok) return { ok: false, error: answer.error, isFinal: false };
  const status = answer.value;
  if (status >= 200 && status < 300) return { ok: true };
  const isFinal = status >= 400 && status < 500 && !PASSING.has(status);
  return { ok: false, error: `it answered ${status}${said === "" ? "" : `: ${said}`}`, isFinal };
}

/** An instant as receivers read it: ISO 8601 in UTC. */
export const isoTime = (at: EpochMs): string => new Date(at).toISOString();
