import type { Rules } from "../../src/engine/ward.ts";
import type { MonotonicMs } from "../../src/model/time.ts";
import { wholeNodes } from "./stage.ts";

/** The breaker, counted anew from what reached the journal. */
export interface Tripwire {
  fired(firings: readonly { readonly policy: string; readonly node: string }[], at: MonotonicMs): void;
  isTripped(): boolean;
  reset(): void;
}

/** A tripwire of a fleet of `nodes` nodes. */
export function createTripwire({ policies, safety }: Rules, nodes: number): Tripwire {
  const { share, amount, withinMs } = safety.breaker;
  const limit = Math.max(amount, wholeNodes(share, nodes));
  const isReal = (name: string) =>
    safety.mode !== "dry_run" && policies.find((rule) => rule.name === name)?.mode !== "dry_run";
  const fired = new Map<string, MonotonicMs>();
  let isTripped = false;
  return {
    fired(firings, at) {
      if (isTripped) return;
      for (const { policy, node } of firings) if (isReal(policy)) fired.set(node, at);
      for (const [node, firedAt] of fired) if (firedAt <= at - withinMs) fired.delete(node);
      isTripped = fired.size > limit;
    },
    isTripped: () => isTripped,
    reset() {
      fired.clear();
      isTripped = false;
    },
  };
}
