import { DAY_MS, type DurationMs } from "../../base/duration.ts";
import type { Share } from "../../base/percent.ts";
import type { NodeId } from "../../model/node.ts";
import type { MonotonicMs } from "../../model/time.ts";

/**
 * Key of the fact that holds when `created_at` was last found to change too often in too many nodes. Removed a day after
 * that.
 */
export const CHANGING_CREATED_AT_FACT = "nodes.changing_created_at";

/** Changes to the `created_at` of one id, each within {@link CHANGES_WITHIN_MS} of the last, that are still plausible. */
const CHANGES_MAX = 2;
const CHANGES_WITHIN_MS: DurationMs = DAY_MS;
/**
 * Maximum share of nodes whose `created_at` changes more often. Above it, the service does not state when nodes were
 * created, but for example the time of the response. Below it, a few ids may be reassigned repeatedly.
 */
const FREQUENT_SHARE_MAX: Share = 0.1;

/** Counts how often the `created_at` of listed ids changes, and tells whether it identifies a node. */
export class CreatedAtChanges {
  /** How often the `created_at` of each id changed, and when it last did, in the order of the last change. */
  readonly #changes = new Map<NodeId, { readonly count: number; readonly at: MonotonicMs }>();
  readonly #frequent = new Set<NodeId>();
  #areTooMany = false;
  /** Until then no `created_at` identifies a node, because an earlier process found that too many change too often. */
  readonly #unreliableUntil: MonotonicMs;

  /** `unreliableAt` is when an earlier process last found that too many change, or null if it did not. */
  constructor(unreliableAt: MonotonicMs | null = null) {
    this.#unreliableUntil = (unreliableAt ?? Number.NEGATIVE_INFINITY) + CHANGES_WITHIN_MS;
  }

  /**
   * Records a change of each of these ids. Returns those that change more often than a node is replaced. `knownNodes` is
   * the number of nodes whose `created_at` is known.
   */
  record(nodes: readonly NodeId[], knownNodes: number, now: MonotonicMs): readonly NodeId[] {
    this.#forgetOld(now);
    for (const node of nodes) {
      const count = (this.#changes.get(node)?.count ?? 0) + 1;
      this.#changes.delete(node);
      this.#changes.set(node, { count, at: now });
      if (count > CHANGES_MAX) this.#frequent.add(node);
    }
    // What an earlier process found is confirmed by a single change of each node.
    const changing = now > this.#unreliableUntil ? this.#frequent.size : this.#changes.size;
    this.#areTooMany = changing > knownNodes * FREQUENT_SHARE_MAX;
    return nodes.filter((node) => this.isFrequent(node));
  }

  /** Returns whether the `created_at` of the id changes more often than a node is replaced. */
  isFrequent(node: NodeId): boolean {
    return this.#frequent.has(node);
  }

  /** Returns whether a different `created_at` shows that the id belongs to another node. */
  identifies(node: NodeId, now: MonotonicMs): boolean {
    return now > this.#unreliableUntil && !(this.#areTooMany && this.isFrequent(node));
  }

  /** Returns whether `created_at` changes too often in too many nodes, as far as this process has seen. */
  areTooMany(now: MonotonicMs): boolean {
    this.#forgetOld(now);
    if (this.#changes.size === 0) this.#areTooMany = false;
    return this.#areTooMany;
  }

  #forgetOld(now: MonotonicMs): void {
    for (const [node, { at }] of this.#changes) {
      if (now - at <= CHANGES_WITHIN_MS) break;
      this.#changes.delete(node);
      this.#frequent.delete(node);
    }
  }
}
