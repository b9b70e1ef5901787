import { SECOND_MS } from "../../../src/base/duration.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { nodesOfShare } from "../daemon/simulation-parts.ts";

/** An independent model of the circuit breaker, fed from committed journal rows. */
export interface BreakerModel {
  recordFirings(firings: readonly { readonly policy: string; readonly node: string }[], at: MonotonicMs): void;
  isOpen(): boolean;
  reset(): void;
}

/** Current inputs of the model. */
export interface BreakerModelDeps {
  config(): RemediationConfig;
  /** Number of nodes in the fleet. */
  nodes(): number;
  /** Whether a policy has fallen back to dry run. */
  hasFallenBack(policy: string): boolean;
}

/** The daemon counts on the journal's clock in whole milliseconds, this model on the virtual clock. */
const CLOCK_TOLERANCE_MS = SECOND_MS;

/** Creates the model of a closed breaker. */
export function createBreakerModel({ config, nodes, hasFallenBack }: BreakerModelDeps): BreakerModel {
  const isActing = (name: string): boolean => {
    const { policies, safety } = config();
    const spec = policies.find((policy) => policy.name === name);
    return safety.mode !== "dry_run" && spec !== undefined && spec.mode !== "dry_run" && !hasFallenBack(name);
  };
  const firedAt = new Map<string, MonotonicMs>();
  let isOpen = false;
  return {
    recordFirings(firings, at) {
      if (isOpen) return;
      const { share, amount, withinMs } = config().safety.breaker;
      for (const { policy, node } of firings) if (isActing(policy)) firedAt.set(node, at);
      for (const [node, time] of firedAt) if (time <= at - withinMs + CLOCK_TOLERANCE_MS) firedAt.delete(node);
      isOpen = firedAt.size > Math.max(amount, nodesOfShare(share, nodes()));
    },
    isOpen: () => isOpen,
    reset() {
      firedAt.clear();
      isOpen = false;
    },
  };
}
