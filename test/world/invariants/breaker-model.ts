import { SECOND_MS } from "../../../src/base/duration.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import type { RemediationRules } from "../../../src/remediation/context.ts";
import { nodesOfShare } from "../daemon/simulation-parts.ts";

/** The breaker, counted anew from what reached the journal. */
export interface BreakerModel {
  recordFirings(firings: readonly { readonly policy: string; readonly node: string }[], at: MonotonicMs): void;
  isOpen(): boolean;
  reset(): void;
}

/** What the breaker counts by now. */
export interface BreakerModelDeps {
  rules(): RemediationRules;
  /** Nodes of the fleet, as the daemon sees it. */
  nodes(): number;
  /** Whether a policy has fallen back to dry_run. */
  hasFallenBack(policy: string): boolean;
}

/** The daemon counts on the journal's clock, in whole milliseconds, and this model on the virtual one. */
const CLOCK_TOLERANCE_MS = SECOND_MS;

/** Creates a model that has counted nothing. */
export function createBreakerModel({ rules, nodes, hasFallenBack: isFallen }: BreakerModelDeps): BreakerModel {
  const isReal = (name: string): boolean => {
    const { policies, safety } = rules();
    const rule = policies.find((each) => each.name === name);
    return safety.mode !== "dry_run" && rule !== undefined && rule.mode !== "dry_run" && !isFallen(name);
  };
  const fired = new Map<string, MonotonicMs>();
  let isTripped = false;
  return {
    recordFirings(firings, at) {
      if (isTripped) return;
      const { share, amount, withinMs } = rules().safety.breaker;
      for (const { policy, node } of firings) if (isReal(policy)) fired.set(node, at);
      for (const [node, firedAt] of fired) if (firedAt <= at - withinMs + CLOCK_TOLERANCE_MS) fired.delete(node);
      isTripped = fired.size > Math.max(amount, nodesOfShare(share, nodes()));
    },
    isOpen: () => isTripped,
    reset() {
      fired.clear();
      isTripped = false;
    },
  };
}
