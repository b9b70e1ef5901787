import type { ApiClient } from "../api-client/client.ts";
import type { DurationMs } from "../base/duration.ts";
import type { NodeId } from "../model/node.ts";
import type { PolicyRule } from "../model/policy/policy.ts";
import type { Collector, Fleet, Snapshot } from "../model/snapshot.ts";
import type { EpochMs } from "../model/time.ts";
import { createEvaluationScope, type EvaluationScope, slotsById } from "../policy/cel/field-values.ts";
import type { Plan } from "../scheduling/planner.ts";

/** The last snapshot, and how policies read it. */
export class ObservedFleet {
  /** The last snapshot, and the plan by which it was collected; null before the first. */
  latest: { readonly snapshot: Snapshot; readonly plan: Plan } | null = null;
  readonly #client: Pick<ApiClient, "serviceTime">;

  constructor(client: Pick<ApiClient, "serviceTime">) {
    this.#client = client;
  }

  /** The nodes of the last snapshot. Throws before the first one. */
  get fleet(): Fleet {
    return this.latest!.snapshot.fleet;
  }

  /** Replaces the nodes of the last snapshot after one of them was read. */
  replaceFleet(fleet: Fleet): void {
    const { snapshot, plan } = this.latest!;
    this.latest = { snapshot: { ...snapshot, fleet }, plan };
  }

  /** Returns the slot of a node; null: it is not listed. */
  slotOf(node: NodeId): number | null {
    return this.latest === null ? null : (slotsById(this.fleet.ids).get(node) ?? null);
  }

  /** Returns when the node was created, on the service's clock; null: unknown, for example because its detail was not read. */
  createdAtOf(node: NodeId): EpochMs | null {
    const slot = this.slotOf(node);
    const at = slot === null ? Number.NaN : this.fleet.createdAtMs[slot]!;
    return Number.isNaN(at) ? null : at;
  }

  /** Returns the `max_age` of a policy for each source; without one, how long the plan considers the data fresh. */
  maxAgeOf(rule: PolicyRule | null): (source: Collector) => DurationMs {
    return (source) => rule?.maxAgeMs ?? this.latest?.plan[source]?.freshMs ?? 0;
  }

  /** Returns the last snapshot, as expressions read it. */
  scope(): EvaluationScope {
    return createEvaluationScope(this.latest!.snapshot, this.#client.serviceTime);
  }
}
