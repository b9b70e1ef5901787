import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { FaultKind } from "../../../src/model/scenario.ts";
import type { Answer, Stage } from "../daemon/simulation-parts.ts";

/** Why a call, by its answer, breaks a law; null: it doesn't. */
export type AnswerLaw = (answer: Answer, stage: Stage) => string | null;

/** What others called, and what a gateway refused, explains a refusal for so long: two windows of the limits. */
const EXCUSED_MS = 2 * MINUTE_MS;

/** What holds for every call. */
export const answerLaws: Readonly<Record<string, AnswerLaw>> = {
  "beyond a limit": (answer, stage) => {
    if (!answer.ok || answer.value.status !== 429 || isExcused(stage)) return null;
    return `a call was answered with 429, and nobody else called: ${JSON.stringify(answer.value.headers)}`;
  },
  concurrency: (_answer, { service, others, clock }) => {
    const { concurrentRequests } = service.admission.plan;
    // The one that was answered is over.
    if (service.inFlight + 1 <= concurrentRequests || clock.monotonic() - others.calledAt < MINUTE_MS) return null;
    return `${service.inFlight + 1} requests at once, of ${concurrentRequests}`;
  },
  month: (_answer, { service, others, ledger }) => {
    const made = service.serial - others.calls;
    const counted = ledger.counted + ledger.pending + ledger.lost;
    return made > counted ? `the service received ${made} calls, and ${counted} were counted before` : null;
  },
};

/** Whether others, or what stands in front of the service, may have caused a refusal. */
function isExcused({ service: { world }, others, clock }: Stage): boolean {
  if (clock.monotonic() - others.calledAt < EXCUSED_MS) return true;
  const now = world.now - world.startMs;
  return world.script.faults.some(
    ({ afterMs, forMs, fault }) => refuses(fault) && now >= afterMs && now < afterMs + forMs + EXCUSED_MS,
  );
}

const refuses = (fault: FaultKind): boolean =>
  fault.kind === "gateway_limit" || fault.kind === "limit_headers" || (fault.kind === "status" && fault.status === 429);
