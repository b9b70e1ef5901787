import type { NodeId } from "../../model/node.ts";
import type { PolicyRule } from "../../model/policy/policy.ts";
import type { Decision, HoldReason } from "../../model/remediation/decision.ts";
import type { EpochMs } from "../../model/time.ts";
import { stepName } from "../../web/api/remediation-views.ts";

/** A step that a policy would have taken. */
export interface ReplayedAction {
  readonly at: EpochMs;
  readonly policy: string;
  readonly node: NodeId;
  /** Such as `reboot`, `forced reboot` or `notify`. */
  readonly action: string;
  /** Index of the policy's step. */
  readonly step: number;
}

/** Why nodes would have been held under a policy. */
export interface ReplayedHold {
  readonly reason: HoldReason;
  /** How often the reasons for a node changed to ones that include this reason. */
  readonly times: number;
  readonly nodes: number;
  /** Detail of the first one. */
  readonly example: string;
}

interface HoldCount {
  times: number;
  readonly nodes: Set<NodeId>;
  readonly example: string;
}

/** Collects the decisions of the policies in a replay. */
export class ReplayOutcome {
  readonly rules: readonly PolicyRule[];
  readonly actions: ReplayedAction[] = [];
  readonly #holds = new Map<string, Map<HoldReason, HoldCount>>();

  constructor(rules: readonly PolicyRule[]) {
    this.rules = rules;
  }

  record({ at, policy, node, step, verdict, blockers }: Decision): void {
    const rule = this.rules.find(({ name }) => name === policy)!;
    if (verdict === "act") {
      this.actions.push({ at, policy, node, step, action: stepName(rule.steps[step]!) });
      return;
    }
    const reasons = this.#holds.get(policy) ?? new Map<HoldReason, HoldCount>();
    this.#holds.set(policy, reasons);
    for (const { reason, detail } of blockers) {
      const count = reasons.get(reason) ?? { times: 0, nodes: new Set(), example: detail };
      reasons.set(reason, count);
      count.times++;
      count.nodes.add(node);
    }
  }

  /** Returns the holds of a policy, most nodes first. */
  holdsOf(policy: string): readonly ReplayedHold[] {
    return [...(this.#holds.get(policy) ?? [])]
      .map(([reason, { times, nodes, example }]) => ({ reason, times, nodes: nodes.size, example }))
      .toSorted((a, b) => b.nodes - a.nodes);
  }
}
