import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { ok } from "../../base/result.ts";
import type { ExternalBlocker } from "../../model/policy/policy.ts";
import type { Clock, ExternalBlockers } from "../../model/ports.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { Policy } from "../../policy/policy.ts";

/** The last results of `blocked_by` queries to Prometheus and Alertmanager. */
export interface ExternalBlockerCache {
  /** Returns what blocks a policy. A query without a recent result blocks as well. */
  blockers(policy: Policy): readonly Blocker[];
  /** Runs the queries of a policy whose results are older than `within`. Never rejects. */
  refresh(policy: Policy, signal: AbortSignal, within?: DurationMs): Promise<void>;
}

interface CachedAnswer {
  readonly at: MonotonicMs;
  /** Null: nothing blocks. */
  readonly blocks: string | null;
}

/** Older results are not used. */
const ANSWER_AGE_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Interval of the queries while a policy has candidates. */
export const QUERY_INTERVAL_MS: DurationMs = 30 * SECOND_MS;

/** Creates an empty cache. */
export function createExternalBlockerCache(externalBlockers: ExternalBlockers, clock: Clock): ExternalBlockerCache {
  const answers = new Map<string, CachedAnswer>();
  const keyOf = (blockedBy: ExternalBlocker): string => JSON.stringify(blockedBy);

  async function queryOne(blockedBy: ExternalBlocker, signal: AbortSignal): Promise<void> {
    const askedAt =
      blockedBy.kind === "query"
        ? await externalBlockers.hasQueryResult(blockedBy.query, signal)
        : await externalBlockers.hasFiringAlerts(blockedBy.matchers, signal);
    const answer = askedAt.ok ? askedAt : ok(`it could not be asked: ${askedAt.error}`);
    const blocks = typeof answer.value === "string" ? answer.value : answer.value ? "it says so" : null;
    answers.set(keyOf(blockedBy), { at: clock.monotonic(), blocks });
  }

  const ageOf = (blockedBy: ExternalBlocker): DurationMs =>
    clock.monotonic() - (answers.get(keyOf(blockedBy))?.at ?? Number.NEGATIVE_INFINITY);

  return {
    blockers: ({ rule }) =>
      rule.blockedBy.flatMap((blockedBy) => {
        const answer = ageOf(blockedBy) <= ANSWER_AGE_MS_MAX ? answers.get(keyOf(blockedBy))! : null;
        const blocks = answer === null ? "it was not asked yet" : answer.blocks;
        return blocks === null ? [] : [{ reason: "blocked_by" as const, detail: `${nameOf(blockedBy)}: ${blocks}` }];
      }),
    async refresh({ rule }, signal, within = 0) {
      const due = rule.blockedBy.filter((blockedBy) => ageOf(blockedBy) > within);
      await Promise.all(due.map((blockedBy) => queryOne(blockedBy, signal)));
    },
  };
}

const nameOf = (blockedBy: ExternalBlocker): string =>
  blockedBy.kind === "query" ? `the query ${blockedBy.query}` : `alerts with ${blockedBy.matchers.join(", ")}`;
