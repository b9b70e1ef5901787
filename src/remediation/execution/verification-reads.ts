import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Action } from "../../model/remediation/episode.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { isInFlight } from "../../policy/own-actions.ts";
import { expressionSources } from "../../policy/policy.ts";
import type { EpisodeContext, RemediationControllerDeps, ServiceContext } from "../context.ts";
import { readNode } from "./executor.ts";

type ReadDeps = EpisodeContext & ServiceContext & Pick<RemediationControllerDeps, "onRead">;

/** Number of reads of a node within the time that a step has to be verified. */
const READS_PER_STEP = 8;
const READ_INTERVAL_MS_MIN: DurationMs = 15 * SECOND_MS;
const READ_INTERVAL_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Interval at which the actions in flight are checked for due reads. */
const CHECK_INTERVAL_MS: DurationMs = 5 * SECOND_MS;
/** Maximum number of concurrent reads, so that few calls wait for permits ahead of the next action. */
const READS_IN_FLIGHT_MAX = 4;

const UNEXPECTED_FAILURE = "verification read failed unexpectedly; the next one is tried";

/**
 * Reads nodes on which actions are in flight if the collectors are too slow to verify them. Ends when `signal` aborts.
 * Never rejects: an unexpected error ends neither the daemon nor later reads.
 */
export async function startVerificationReads(context: ReadDeps, signal: AbortSignal): Promise<void> {
  const { remediationState, clock, log } = context;
  // When the node of each action in flight was last read, successfully or not.
  let lastReadAt: ReadonlyMap<string, MonotonicMs> = new Map();
  // A read of a node that does not respond takes long, and must not delay the others.
  const reads = new Map<string, Promise<void>>();
  while (!signal.aborted) {
    await clock.sleep(CHECK_INTERVAL_MS, signal);
    if (signal.aborted) break;
    const readAttempts = new Map<string, MonotonicMs>();
    try {
      for (const action of [...remediationState.records.actions()].filter(isInFlight)) {
        const { id, dryRun } = action;
        const last = lastReadAt.get(id) ?? Number.NEGATIVE_INFINITY;
        const mayRead = !dryRun && !reads.has(id) && reads.size < READS_IN_FLIGHT_MAX;
        const isReading = mayRead && isReadDue(context, action, last);
        readAttempts.set(id, isReading ? clock.monotonic() : last);
        if (!isReading) continue;
        const read = readForVerification(context, action, signal);
        reads.set(
          id,
          read.finally(() => reads.delete(id)),
        );
      }
    } catch (error) {
      log.error({ err: error }, UNEXPECTED_FAILURE);
    }
    lastReadAt = readAttempts;
  }
  await Promise.all(reads.values());
}

function isReadDue(context: ReadDeps, action: Action, lastReadAt: MonotonicMs): boolean {
  const sentUnder = context.policies.sentUnder(action);
  const slot = context.observed.slotOf(action.node);
  if (sentUnder === null || slot === null || action.sentAt === null) return false;
  const { policy, verify, expect } = sentUnder;
  const { fleet } = context.observed;
  const intervalMs = Math.min(READ_INTERVAL_MS_MAX, Math.max(READ_INTERVAL_MS_MIN, verify.withinMs / READS_PER_STEP));
  const sources = expressionSources([policy.match, policy.when, expect]);
  const column = sources.includes("details") ? fleet.detailedAt : fleet.listedAt;
  const observedAt = Math.max(context.remediationState.epochOf(column.at(slot)), action.sentAt);
  const ageMs = context.remediationState.now() - (Number.isNaN(observedAt) ? action.sentAt : observedAt);
  return ageMs >= intervalMs && context.clock.monotonic() - lastReadAt >= intervalMs;
}

async function readForVerification(context: ReadDeps, { node }: Action, signal: AbortSignal): Promise<void> {
  try {
    const error = await readNode(context, node, signal);
    if (error === null) context.onRead();
    else if (!signal.aborted) context.log.warn({ node, problem: error.message }, "verification read failed");
  } catch (error) {
    context.log.error({ node, err: error }, UNEXPECTED_FAILURE);
  }
}
