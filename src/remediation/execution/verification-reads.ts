import { decodeNodeDetail } from "../../api-client/decoding/records.ts";
import { readNodeCall } from "../../api-client/endpoints.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Action } from "../../model/remediation/episode.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { isInFlight } from "../../policy/facts.ts";
import { expressionSources } from "../../policy/policy.ts";
import type { RemediationContext } from "../context.ts";

type ReadDeps = Pick<
  RemediationContext,
  "client" | "clock" | "inventory" | "log" | "observed" | "onRead" | "policies" | "remediationState"
>;

/** Reads of a node within the time of a step. */
const READS_PER_STEP = 8;
const READ_INTERVAL_MS_MIN: DurationMs = 15 * SECOND_MS;
const READ_INTERVAL_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** How often due reads are looked for. */
const CHECK_INTERVAL_MS: DurationMs = 5 * SECOND_MS;

/**
 * Reads nodes on which actions are in flight if the collectors are too slow to verify them. Ends when `signal` aborts.
 */
export async function startVerificationReads(context: ReadDeps, signal: AbortSignal): Promise<void> {
  const { remediationState, clock } = context;
  // By id of an action under way: when its node was last read, with success or not.
  let lastReadAt: ReadonlyMap<string, MonotonicMs> = new Map();
  while (!signal.aborted) {
    await clock.sleep(CHECK_INTERVAL_MS, signal);
    const readAttempts = new Map<string, MonotonicMs>();
    for (const action of [...remediationState.records.actions()].filter(isInFlight)) {
      if (signal.aborted) return;
      const last = lastReadAt.get(action.id) ?? Number.NEGATIVE_INFINITY;
      const isReading = !action.shadow && isReadDue(context, action, last);
      readAttempts.set(action.id, isReading ? clock.monotonic() : last);
      if (isReading) await readForVerification(context, action, signal);
    }
    lastReadAt = readAttempts;
  }
}

function isReadDue(context: ReadDeps, action: Action, triedAt: MonotonicMs): boolean {
  const policy = context.policies.withFingerprint(action.fingerprint);
  const step = policy?.rule.steps[action.step];
  const slot = context.observed.slotOf(action.node);
  if (policy === null || step === undefined || step.action === "notify" || slot === null || action.sentAt === null) {
    return false;
  }
  const { fleet } = context.observed;
  const every = Math.min(READ_INTERVAL_MS_MAX, Math.max(READ_INTERVAL_MS_MIN, step.verify.withinMs / READS_PER_STEP));
  const sources = expressionSources([policy.match, policy.when, policy.expects[action.step] ?? null]);
  const column = sources.includes("details") ? fleet.detailedAt : fleet.listedAt;
  const observedAt = Math.max(context.remediationState.epochOf(column[slot]!), action.sentAt);
  const since = context.remediationState.now() - (Number.isNaN(observedAt) ? action.sentAt : observedAt);
  return since >= every && context.clock.monotonic() - triedAt >= every;
}

async function readForVerification(context: ReadDeps, { node }: Action, signal: AbortSignal): Promise<void> {
  const answer = await context.client.get(readNodeCall(node), "action", signal);
  if (!answer.ok) {
    if (!signal.aborted) context.log.warn({ node, problem: answer.error.message }, "verification read failed");
    return;
  }
  const detail = decodeNodeDetail(answer.value.json, () => {});
  if (detail === null || detail.id !== node || !context.inventory.has(node)) return;
  context.inventory.recordDetail(detail, answer.value.at, context.clock.now());
  context.onRead();
}
