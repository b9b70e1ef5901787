import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Action } from "../../model/remediation/episode.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { isUnderWay } from "../../policy/facts.ts";
import { sourcesIn } from "../../policy/policy.ts";
import { readNode } from "../../api-client/endpoints.ts";
import { readNodeDetail } from "../../api-client/decoding/records.ts";
import { policyAsOf, slotOf, type Ward } from "../context.ts";

/** A step's time is looked into so many times. */
const LOOKS_PER_STEP = 8;
const LOOK_MS_MIN: DurationMs = 15 * SECOND_MS;
const LOOK_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Looked for something due this often. */
const TICK_MS: DurationMs = 5 * SECOND_MS;

/**
 * Reads the nodes that something was done to, wherever the collectors would not bring it soon enough to verify it. Ends
 * when `signal` aborts.
 */
export async function startVerifying(ward: Ward, signal: AbortSignal): Promise<void> {
  const { books, clock } = ward;
  // By id of an action under way: when its node was last read, with success or not.
  let triedAt: ReadonlyMap<string, MonotonicMs> = new Map();
  while (!signal.aborted) {
    await clock.sleep(TICK_MS, signal);
    const tried = new Map<string, MonotonicMs>();
    for (const action of [...books.casebook.actions()].filter(isUnderWay)) {
      if (signal.aborted) return;
      const last = triedAt.get(action.id) ?? Number.NEGATIVE_INFINITY;
      const isLook = !action.shadow && isDue(ward, action, last);
      tried.set(action.id, isLook ? clock.monotonic() : last);
      if (isLook) await look(ward, action, signal);
    }
    triedAt = tried;
  }
}

function isDue(ward: Ward, action: Action, triedAt: MonotonicMs): boolean {
  const policy = policyAsOf(ward, action.fingerprint);
  const step = policy?.rule.steps[action.step];
  const slot = slotOf(ward, action.node);
  if (policy === null || step === undefined || step.action === "notify" || slot === null || action.sentAt === null) {
    return false;
  }
  const { fleet } = ward.view!.snapshot;
  const every = Math.min(LOOK_MS_MAX, Math.max(LOOK_MS_MIN, step.verify.withinMs / LOOKS_PER_STEP));
  const sources = sourcesIn([policy.match, policy.when, policy.expects[action.step] ?? null]);
  const column = sources.includes("details") ? fleet.detailedAt : fleet.listedAt;
  const lookedAt = Math.max(ward.books.epochOf(column[slot]!), action.sentAt);
  const since = ward.books.now() - (Number.isNaN(lookedAt) ? action.sentAt : lookedAt);
  return since >= every && ward.clock.monotonic() - triedAt >= every;
}

async function look(ward: Ward, { node }: Action, signal: AbortSignal): Promise<void> {
  const answer = await ward.client.get(readNode(node), "action", signal);
  if (!answer.ok) {
    if (!signal.aborted) ward.log.warn({ node, problem: answer.error.message }, "an action could not be looked after");
    return;
  }
  const detail = readNodeDetail(answer.value.json, () => {});
  if (detail === null || detail.id !== node || !ward.inventory.has(node)) return;
  ward.inventory.detail(detail, answer.value.at, ward.clock.now());
  ward.onRead();
}
