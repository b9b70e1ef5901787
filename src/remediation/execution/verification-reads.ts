import type { ApiError } from "../../api-client/errors.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { VERIFICATION_READ_MS_MIN } from "../../model/policy/policy.ts";
import type { Action } from "../../model/remediation/episode.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { isInFlight } from "../../policy/episodes/attempts.ts";
import { expressionSources, policySources } from "../../policy/policy.ts";
import type { EpisodeContext, RemediationControllerDeps, ServiceContext } from "../context.ts";
import { readNode } from "./executor.ts";

type ReadDeps = EpisodeContext & ServiceContext & Pick<RemediationControllerDeps, "onRead">;

/** Number of reads of a node within the time that a step has to be verified. */
const READS_PER_STEP = 8;
const READ_INTERVAL_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Interval at which the actions in flight are checked for due reads. */
const CHECK_INTERVAL_MS: DurationMs = 5 * SECOND_MS;
/** Maximum number of concurrent reads, so that few calls are ahead of the next action while it waits for a permit. */
const READS_IN_FLIGHT_MAX = 4;

/** If no read is answered for this long, the service is down. One node is then read at this interval until it answers. */
const OUTAGE_INTERVAL_MS: DurationMs = 5 * MINUTE_MS;
/** Failures that show that the service answered, but not with the node. */
const ANSWERS: ReadonlySet<ApiError["kind"]> = new Set(["not_found", "wrong_shape", "incomplete"]);

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
  const service = createServiceFailures(context);
  while (!signal.aborted) {
    await clock.sleep(CHECK_INTERVAL_MS, signal);
    if (signal.aborted) break;
    const readAttempts = new Map<string, MonotonicMs>();
    try {
      for (const action of [...remediationState.records.actions()].filter(isInFlight)) {
        const { id, dryRun } = action;
        const last = lastReadAt.get(id) ?? Number.NEGATIVE_INFINITY;
        const mayRead = !dryRun && !reads.has(id) && reads.size < READS_IN_FLIGHT_MAX && service.mayRead();
        const isReading = mayRead && isReadDue(context, action, last);
        readAttempts.set(id, isReading ? clock.monotonic() : last);
        if (!isReading) continue;
        service.recordRead();
        const read = readForVerification(context, action, signal)
          .then(service.recordResult)
          .finally(() => reads.delete(id));
        reads.set(id, read);
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
  const intervalMs = Math.min(
    READ_INTERVAL_MS_MAX,
    Math.max(VERIFICATION_READ_MS_MIN, verify.withinMs / READS_PER_STEP),
  );
  const sources = expressionSources([policy.match, policy.when, expect]);
  const column = sources.includes("details") ? fleet.detailedAt : fleet.listedAt;
  const observedAt = Math.max(context.remediationState.epochOf(column.at(slot)), action.sentAt);
  if (observedAt > action.sentAt && waitsForSessions(context, action, policySources(policy))) return false;
  const ageMs = context.remediationState.now() - (Number.isNaN(observedAt) ? action.sentAt : observedAt);
  return ageMs >= intervalMs && context.clock.monotonic() - lastReadAt >= intervalMs;
}

/**
 * Returns whether only a walk of the sessions can show the effect of an action: its condition reads them, and none began
 * since it was sent. Other actions than `disconnect` also show in the status of the node.
 */
function waitsForSessions(
  { observed, remediationState }: ReadDeps,
  { request, sentAt }: Action,
  sources: ReturnType<typeof policySources>,
): boolean {
  if (request.kind !== "disconnect" || !sources.includes("sessions")) return false;
  const walkedFrom = observed.latest?.snapshot.sessions?.observedFrom ?? Number.NaN;
  return !(remediationState.epochOf(walkedFrom) > sentAt!);
}

/** Reads a node. Returns whether the service answered. */
async function readForVerification(context: ReadDeps, { node }: Action, signal: AbortSignal): Promise<boolean> {
  try {
    const error = await readNode(context, node, signal);
    if (error === null) context.onRead();
    else if (!signal.aborted) context.log.warn({ node, problem: error.message }, "verification read failed");
    return error === null || ANSWERS.has(error.kind);
  } catch (error) {
    context.log.error({ node, err: error }, UNEXPECTED_FAILURE);
    return true;
  }
}

/** Distinguishes an outage of the service, in which every read fails, from nodes that can't be read. */
function createServiceFailures({ clock, inventory, observed }: ReadDeps) {
  /** When the first of the reads failed that have failed since the last answer, or null if there is none. */
  let failingSince: MonotonicMs | null = null;
  let readAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  const answeredAt = () => Math.max(inventory.lastDetailAt() ?? 0, observed.fleet.walkedAt ?? 0);
  return {
    /** Returns whether a read may begin now. */
    mayRead(): boolean {
      if (failingSince === null || answeredAt() > failingSince) return true;
      const now = clock.monotonic();
      return now - failingSince < OUTAGE_INTERVAL_MS || now - readAt >= OUTAGE_INTERVAL_MS;
    },
    /** Records the beginning of a read. */
    recordRead(): void {
      readAt = clock.monotonic();
    },
    /** Records whether the service answered. */
    recordResult(isAnswered: boolean): void {
      if (isAnswered || answeredAt() > (failingSince ?? 0)) failingSince = null;
      if (!isAnswered) failingSince ??= clock.monotonic();
    },
  };
}
