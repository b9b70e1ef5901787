import type { Dated, Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { MissingReason } from "./field-readers.ts";
import type { Field } from "./fields.ts";
import { fleetAggregates } from "./fleet-aggregates.ts";
import type { Value } from "./term.ts";

/**
 * Returns the value of a field of a node with the time at which it was observed, which may be before `freshFrom`. Medians
 * leave out values from before `freshFrom`.
 */
export type NodeReader = (field: Field, freshFrom: MonotonicMs) => Dated<Value> | MissingReason;

/** A snapshot, as expressions read it. Returns the node in a slot, which must not be empty. */
export type EvaluationScope = (slot: number) => NodeReader;

/**
 * Creates the scope of a snapshot. `serviceTime` converts a time to the service's clock, or null if that clock is
 * unknown.
 */
export function createEvaluationScope(
  { fleet, sessions }: Snapshot,
  serviceTime: (at: MonotonicMs) => EpochMs | null,
): EvaluationScope {
  const data = { fleet, sessions, serviceTime, aggregates: fleetAggregates(fleet) };
  return (slot) => (field, freshFrom) => field.read(data, slot, freshFrom);
}
