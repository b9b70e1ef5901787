import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { FaultKind } from "../../../src/model/scenario.ts";
import type { PostAnswer, SimulationParts } from "../daemon/simulation-parts.ts";

/** Why a call, by its answer, breaks a law; null: it doesn't. */
export type AnswerInvariant = (answer: PostAnswer, parts: SimulationParts) => string | null;

/** What others called, and what a gateway refused, explains a refusal for so long: two windows of the limits. */
const EXCUSED_AFTER_FAULT_MS = 2 * MINUTE_MS;

/** What holds for every call. */
export const answerInvariants: Readonly<Record<string, AnswerInvariant>> = {
  "beyond a limit": (answer, parts) => {
    if (!answer.ok || answer.value.status !== 429 || isExcused(parts)) return null;
    return `a call was answered with 429, and nobody else called: ${JSON.stringify(answer.value.headers)}`;
  },
  concurrency: (_answer, { service, externalUsers, clock }) => {
    const { concurrentRequests } = service.apiLimits.plan;
    // The one that was answered is over.
    if (service.inFlight + 1 <= concurrentRequests || clock.monotonic() - externalUsers.calledAt < MINUTE_MS)
      return null;
    return `${service.inFlight + 1} requests at once, of ${concurrentRequests}`;
  },
  month: (_answer, { service, externalUsers, callCount: ledger }) => {
    const callsMade = service.serial - externalUsers.calls;
    const counted = ledger.counted + ledger.pending + ledger.lost;
    return callsMade > counted ? `the service received ${callsMade} calls, and ${counted} were counted before` : null;
  },
};

/** Whether others, or what stands in front of the service, may have caused a refusal. */
function isExcused({ service: { world }, externalUsers, clock }: SimulationParts): boolean {
  if (clock.monotonic() - externalUsers.calledAt < EXCUSED_AFTER_FAULT_MS) return true;
  const now = world.now - world.startMs;
  return world.faultSchedule.faults.some(
    ({ afterMs, forMs, fault }) =>
      rejectsCalls(fault) && now >= afterMs && now < afterMs + forMs + EXCUSED_AFTER_FAULT_MS,
  );
}

const rejectsCalls = (fault: FaultKind): boolean =>
  fault.kind === "gateway_limit" || fault.kind === "limit_headers" || (fault.kind === "status" && fault.status === 429);
