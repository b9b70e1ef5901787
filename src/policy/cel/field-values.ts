import type { NodeId } from "../../model/node.ts";
import type { Dated, Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { type MissingReason, slotsById } from "./field-readers.ts";
import type { Field } from "./fields.ts";
import { fleetAggregates } from "./fleet-aggregates.ts";
import type { Value } from "./term.ts";

/** A node, as expressions read it. */
export interface EvaluatedNode {
  readonly id: NodeId;
  /**
   * Returns the value of a field with the time at which it was observed, which may be before `freshFrom`. Medians leave
   * out values from before `freshFrom`.
   */
  read(field: Field, freshFrom: MonotonicMs): Dated<Value> | MissingReason;
}

/** A snapshot, as expressions read it. */
export interface EvaluationScope {
  /** Returns the node in a slot, which must not be empty. */
  nodeAt(slot: number): EvaluatedNode;
  /** Returns the node with this id, or null if it is not in the fleet. */
  find(id: NodeId): EvaluatedNode | null;
}

/**
 * Creates the scope of a snapshot. `serviceTime` converts a time to the service's clock, or null if that clock is
 * unknown.
 */
export function createEvaluationScope(
  { fleet, sessions }: Snapshot,
  serviceTime: (at: MonotonicMs) => EpochMs | null,
): EvaluationScope {
  const data = { fleet, sessions, serviceTime, aggregates: fleetAggregates(fleet) };
  const nodeAt = (slot: number): EvaluatedNode => ({
    id: fleet.ids[slot]!,
    read: (field, freshFrom) => field.read(data, slot, freshFrom),
  });
  return {
    nodeAt,
    find(id) {
      const slot = slotsById(fleet).get(id);
      return slot === undefined ? null : nodeAt(slot);
    },
  };
}
