import { growColumn } from "../../base/typed-column.ts";
import type { NodeId } from "../../model/node.ts";

/**
 * When each node was last observed not to meet the condition of each policy, or with an unknown status since, by slot.
 * Empty until this process has evaluated trusted data.
 */
export class LastHealthyTimes {
  readonly #byPolicy = new Map<string, Float64Array<ArrayBuffer>>();
  /** The node that had each slot last. */
  readonly #ids: NodeId[] = [];

  /** Returns the times under a policy for at least `slots` slots, NaN for a node that was never observed to be healthy. */
  under(policy: string, slots: number): Float64Array<ArrayBuffer> {
    const times = growColumn(this.#byPolicy.get(policy) ?? new Float64Array(0), slots, Number.NaN);
    this.#byPolicy.set(policy, times);
    return times;
  }

  /**
   * Records which node has a slot, and forgets what was observed of another node that had it. `node` is empty if none has
   * it. Nothing is forgotten then, because a node that returns to its slot may have become unhealthy during its absence.
   * Returns false if the slot has the same node as before, and otherwise true.
   */
  assign(slot: number, node: NodeId): boolean {
    if (node === this.#ids[slot]) return false;
    if (node === "") return true;
    for (const times of this.#byPolicy.values()) times[slot] = Number.NaN;
    this.#ids[slot] = node;
    return true;
  }

  /** Forgets what was observed under all policies but these. */
  retain(policies: ReadonlySet<string>): void {
    for (const policy of this.#byPolicy.keys()) if (!policies.has(policy)) this.#byPolicy.delete(policy);
  }

  clear(): void {
    this.#byPolicy.clear();
  }
}
