import type { Rules } from "../../../src/remediation/context.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import { wholeNodes } from "../daemon/simulation-parts.ts";

/** The breaker, counted anew from what reached the journal. */
export interface Tripwire {
  fired(firings: readonly { readonly policy: string; readonly node: string }[], at: MonotonicMs): void;
  isTripped(): boolean;
  reset(): void;
}

/** What a tripwire counts by, as it is now. */
export interface TripwireTerms {
  rules(): Rules;
  /** Nodes of the fleet, as the daemon sees it. */
  nodes(): number;
  /** Whether a policy has fallen back to dry_run. */
  isFallen(policy: string): boolean;
}

/** Creates a tripwire that has counted nothing. */
export function createTripwire({ rules, nodes, isFallen }: TripwireTerms): Tripwire {
  const isReal = (name: string): boolean => {
    const { policies, safety } = rules();
    const rule = policies.find((each) => each.name === name);
    return safety.mode !== "dry_run" && rule !== undefined && rule.mode !== "dry_run" && !isFallen(name);
  };
  const fired = new Map<string, MonotonicMs>();
  let isTripped = false;
  return {
    fired(firings, at) {
      if (isTripped) return;
      const { share, amount, withinMs } = rules().safety.breaker;
      for (const { policy, node } of firings) if (isReal(policy)) fired.set(node, at);
      for (const [node, firedAt] of fired) if (firedAt <= at - withinMs) fired.delete(node);
      isTripped = fired.size > Math.max(amount, wholeNodes(share, nodes()));
    },
    isTripped: () => isTripped,
    reset() {
      fired.clear();
      isTripped = false;
    },
  };
}
