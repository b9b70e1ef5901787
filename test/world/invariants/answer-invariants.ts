import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { FaultKind } from "../../../src/config/schema/scenario.ts";
import { concurrentRequests } from "../../../src/simulator/http/service.ts";
import type { PostAnswer, SimulationParts } from "../daemon/simulation-parts.ts";

/** Returns how a call, by its answer, violates the invariant, or null if it does not. */
export type AnswerInvariant = (answer: PostAnswer, parts: SimulationParts) => string | null;

/** External calls and rejections by a gateway may cause a 429 this much later: two windows of the limits. */
const EXCUSED_AFTER_FAULT_MS = 2 * MINUTE_MS;

/** Invariants of every API call. */
export const answerInvariants: Readonly<Record<string, AnswerInvariant>> = {
  "rate limit exceeded": (answer, parts) => {
    if (!answer.ok || answer.value.status !== 429 || isExcused(parts)) return null;
    return `a call was answered with 429 without external usage: ${JSON.stringify(answer.value.headers)}`;
  },
  "too many concurrent requests": (_answer, { service, externalUsers, clock }) => {
    const limit = service.apiLimits.plan.concurrentRequests;
    // The answered request is no longer counted by the service.
    const requests = concurrentRequests(service) + 1;
    if (requests <= limit || clock.monotonic() - externalUsers.calledAt < MINUTE_MS) return null;
    return `${requests} concurrent requests, limit ${limit}`;
  },
  "call not counted": (_answer, { service, externalUsers, callCount }) => {
    const callsMade = service.serial - externalUsers.calls;
    const counted = callCount.counted + callCount.pending + callCount.lost;
    return callsMade > counted ? `the service received ${callsMade} calls, but only ${counted} were counted` : null;
  },
};

/** Returns whether external calls or a fault may have caused a 429. */
function isExcused({ service: { network }, externalUsers, clock }: SimulationParts): boolean {
  if (clock.monotonic() - externalUsers.calledAt < EXCUSED_AFTER_FAULT_MS) return true;
  const now = network.now - network.startMs;
  return network.faultSchedule.faults.some(
    ({ afterMs, forMs, fault }) =>
      rejectsCalls(fault) && now >= afterMs && now < afterMs + forMs + EXCUSED_AFTER_FAULT_MS,
  );
}

const rejectsCalls = (fault: FaultKind): boolean =>
  fault.kind === "gateway_limit" || fault.kind === "limit_headers" || (fault.kind === "status" && fault.status === 429);
