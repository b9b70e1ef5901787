import type { NodeId } from "../../model/node.ts";
import type { Decision, HoldReason } from "../../model/remediation/decision.ts";
import type { RemediationContext } from "../context.ts";

/** The last decision about a node under a policy. */
export interface LastDecision {
  readonly policy: string;
  readonly node: NodeId;
  readonly dryRun: boolean;
  /** Mode, verdict and reasons. A decision with another text is a change. */
  readonly text: string;
  /** Why the node is held, or empty if it is acted on. */
  readonly reasons: readonly HoldReason[];
}

/** Records each decision that differs from the last one about its node, and remembers the last ones. */
export class DecisionLog {
  readonly #context: Pick<RemediationContext, "log" | "metrics" | "remediationState">;
  readonly #last = new Map<string, LastDecision>();

  constructor(context: Pick<RemediationContext, "log" | "metrics" | "remediationState">) {
    this.#context = context;
  }

  /** The last decision about each node whose timer fires. */
  lastDecisions(): IterableIterator<LastDecision> {
    return this.#last.values();
  }

  /** Counts, logs and journals a decision if it is a change. */
  record(decision: Decision): void {
    const { policy, node, episode, step, verdict, blockers, mode } = decision;
    const reasons = [...new Set(blockers.map(({ reason }) => reason))];
    // Each step that is taken is a decision of its own.
    const subject = verdict === "act" ? `${episode} ${step}` : reasons.toSorted().join(" ");
    const text = `${mode} ${verdict} ${subject}`;
    const key = keyOf(policy, node);
    if (this.#last.get(key)?.text === text) return;
    this.#last.set(key, { policy, node, dryRun: mode === "dry_run", text, reasons });
    const { log, metrics, remediationState } = this.#context;
    for (const reason of verdict === "act" ? (["all_clear"] as const) : reasons)
      metrics.inc("proxywarden_decisions_total", { policy, verdict, reason });
    log.info({ policy, node, mode, verdict, reasons }, "decided");
    remediationState.record([{ kind: "decision", row: decision }]);
  }

  /** Forgets the last decision about a node, so that the next one is a change. */
  forget(policy: string, node: NodeId): void {
    this.#last.delete(keyOf(policy, node));
  }

  /** Forgets the decisions about nodes whose timer does not fire any more, in steps. */
  *forgetCleared(): Generator<void, void> {
    const { records } = this.#context.remediationState;
    for (const { policy, node } of this.lastDecisions()) {
      if (records.timer(policy, node).state !== "firing") this.forget(policy, node);
      yield;
    }
  }
}

const keyOf = (policy: string, node: NodeId): string => JSON.stringify([policy, node]);
