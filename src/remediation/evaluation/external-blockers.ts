import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { ExternalBlocker } from "../../model/policy/policy.ts";
import type { Clock, ExternalBlockers } from "../../model/ports.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { Policy } from "../../policy/policy.ts";

/** The last results of `blocked_by` queries to Prometheus and Alertmanager. */
export type ExternalBlockerCache = ReturnType<typeof createExternalBlockerCache>;

interface CachedResult {
  readonly at: MonotonicMs;
  /** Why it blocks, or null if nothing blocks. */
  readonly blockedDetail: string | null;
}

/** Maximum age of a result. Older results are not used. */
const RESULT_AGE_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Interval of the queries while a policy has candidates. */
export const QUERY_INTERVAL_MS: DurationMs = 30 * SECOND_MS;

const POSITIVE_DETAILS: Readonly<Record<ExternalBlocker["kind"], string>> = {
  query: "it returns a result",
  alerts: "one is firing",
};

/** Creates an empty cache of results. */
export function createExternalBlockerCache(externalBlockers: ExternalBlockers, clock: Clock) {
  const results = new Map<string, CachedResult>();
  const keyOf = (blockedBy: ExternalBlocker): string => JSON.stringify(blockedBy);

  /** Returns the result if it is not older than `maxAgeMs`, or null if there is none. */
  function resultWithin(blockedBy: ExternalBlocker, maxAgeMs: DurationMs): CachedResult | null {
    const result = results.get(keyOf(blockedBy));
    return result !== undefined && clock.monotonic() - result.at <= maxAgeMs ? result : null;
  }

  async function query(blockedBy: ExternalBlocker, signal: AbortSignal): Promise<void> {
    const answer = await externalBlockers.blocks(blockedBy, signal);
    const detail = answer.ok ? POSITIVE_DETAILS[blockedBy.kind] : `the query failed: ${answer.error}`;
    const blocks = !answer.ok || answer.value;
    results.set(keyOf(blockedBy), { at: clock.monotonic(), blockedDetail: blocks ? detail : null });
  }

  return {
    /** Returns what blocks a policy. A query without a recent result blocks as well. */
    blockers: ({ rule }: Policy): readonly Blocker[] =>
      rule.blockedBy.flatMap((blockedBy) => {
        const result = resultWithin(blockedBy, RESULT_AGE_MS_MAX);
        const detail = result === null ? "there is no recent result" : result.blockedDetail;
        return detail === null ? [] : [{ reason: "blocked_by", detail: `${nameOf(blockedBy)}: ${detail}` }];
      }),
    /** Runs the queries of a policy whose results are older than `maxAgeMs`. Never rejects. */
    async refresh({ rule }: Policy, signal: AbortSignal, maxAgeMs: DurationMs): Promise<void> {
      const due = rule.blockedBy.filter((blockedBy) => resultWithin(blockedBy, maxAgeMs) === null);
      await Promise.all(due.map((blockedBy) => query(blockedBy, signal)));
    },
  };
}

const nameOf = (blockedBy: ExternalBlocker): string =>
  blockedBy.kind === "query" ? `the query ${blockedBy.query}` : `alerts with ${blockedBy.matchers.join(", ")}`;
