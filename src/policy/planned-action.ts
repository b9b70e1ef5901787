import { MINUTE_MS } from "../base/duration.ts";
import type { Action, ActionRequest } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";
import { isDryRun } from "./facts.ts";
import { type Candidate, nextStep } from "./guards/guard.ts";

/** Longest reason of a quarantine that is sent, in characters. */
const QUARANTINE_REASON_CHARACTERS_MAX = 500;

/** Returns the action of a candidate's next step, with its evidence. Throws if the step is not an action. */
export function planAction(candidate: Candidate, id: string, now: EpochMs): Action {
  const { active, node, evaluation, observedAt } = candidate;
  const episode = candidate.episode!;
  return {
    id,
    episode: episode.id,
    policy: active.policy.rule.name,
    node: node.id,
    country: node.country,
    region: node.region,
    step: episode.step,
    shadow: isDryRun(active),
    fingerprint: active.policy.fingerprint,
    request: actionRequestOf(candidate),
    state: "intended",
    evidence: { fields: evaluation.fields(), observedAt },
    createdAt: now,
    sentAt: null,
    endedAt: null,
    outcome: null,
    inDoubt: false,
    detail: null,
    uptimeHoursBefore: null,
    rebootingSeen: false,
    proof: null,
  };
}

function actionRequestOf(candidate: Candidate): ActionRequest {
  const step = nextStep(candidate);
  switch (step?.action) {
    case "disconnect":
      return { kind: "disconnect" };
    case "reboot":
      return { kind: "reboot", force: step.force };
    case "quarantine": {
      const { id, policy, node } = candidate.episode!;
      const { when } = candidate.active.policy.rule;
      const values: Readonly<Record<string, string>> = { policy, when, episode: id, node };
      const reason = step.reason.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) => values[name] ?? "");
      return {
        kind: "quarantine",
        reason: reason.slice(0, QUARANTINE_REASON_CHARACTERS_MAX),
        durationMinutes: Math.round(step.durationMs / MINUTE_MS),
      };
    }
    case "notify":
    case undefined:
      throw new Error(`step ${candidate.episode!.step} of ${candidate.episode!.id} is not an action`);
    default:
      return step satisfies never;
  }
}
