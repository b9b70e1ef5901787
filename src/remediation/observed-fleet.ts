import type { ApiClient } from "../api-client/client.ts";
import type { DurationMs } from "../base/duration.ts";
import type { PolicySpec } from "../config/schema/policy.ts";
import { NODE_STATUSES, type NodeId, type NodeStatus } from "../model/node.ts";
import type { Fleet, Location, Snapshot } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { type ScopeData, slotsById } from "../policy/cel/field-readers.ts";
import { fleetAggregates } from "../policy/cel/fleet-aggregates.ts";
import { type EvaluationInput, evaluatePolicy, type MaxAgeOf, type PolicyEvaluation } from "../policy/evaluation.ts";
import { type Policy, policySources } from "../policy/policy.ts";
import type { TimerDurations } from "../policy/timer.ts";
import type { Plan } from "../scheduling/planner.ts";

/** Data that was observed at the very time of a suspension counts as observed before it. */
const TICK_MS: DurationMs = 0.001;

/**
 * A node that was not seen since the start has left once this many complete walks that read every page have not shown
 * it. One of them may miss it.
 */
const FULL_WALKS_TO_LEAVE = 2;
/** It has also left once this many complete walks have not shown it, even if they could not read every page. */
const WALKS_TO_LEAVE = 10;

/** Returns whether a node has left the list. One that was seen since the start is in the fleet until it leaves. */
export function hasLeft(fleet: Fleet, node: NodeId): boolean {
  const { completeWalks = 0, fullWalks = 0 } = fleet.lastWalk ?? {};
  return (fullWalks >= FULL_WALKS_TO_LEAVE || completeWalks >= WALKS_TO_LEAVE) && !slotsById(fleet).has(node);
}

/** The last snapshot, and how policies read it. */
export class ObservedFleet {
  /** The last snapshot, and the plan under which it was collected, or null before the first. */
  latest: { readonly snapshot: Snapshot; readonly plan: Plan } | null = null;
  readonly #client: Pick<ApiClient, "serviceTime">;
  readonly #suspendedAt: () => MonotonicMs;

  /** `suspendedAt` returns when the machine was last suspended. Data from before is older than it seems. */
  constructor(client: Pick<ApiClient, "serviceTime">, suspendedAt = () => Number.NEGATIVE_INFINITY) {
    this.#client = client;
    this.#suspendedAt = suspendedAt;
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

  /** Returns the slot of a node, or null if it is not listed. */
  slotOf(node: NodeId): number | null {
    return this.latest === null ? null : (slotsById(this.fleet).get(node) ?? null);
  }

  /** Returns the status of the node in a slot. */
  statusAt(slot: number): NodeStatus {
    return NODE_STATUSES[this.fleet.status[slot]!]!;
  }

  /** Returns the uptime of the node in a slot, or null if unknown. */
  uptimeHoursAt(slot: number): number | null {
    const uptime = this.fleet.uptimeHours.at(slot);
    return Number.isNaN(uptime) ? null : uptime;
  }

  /** Returns the name of a node; its id if it has none or is not listed. */
  nameOf(node: NodeId): string {
    const slot = this.slotOf(node);
    return (slot === null ? "" : this.fleet.name[slot]) || node;
  }

  /** Returns the country and region of a node, which are empty if it is not listed. */
  locationOf(node: NodeId): Location {
    const slot = this.slotOf(node);
    const location = slot === null ? undefined : this.fleet.locations[this.fleet.locationIndex[slot]!];
    return location ?? { country: "", region: "" };
  }

  /** Returns the IP address of a node, which is empty if it has none or is not listed. */
  ipAddressOf(node: NodeId): string {
    const slot = this.slotOf(node);
    return slot === null ? "" : this.fleet.ipAddress[slot]!;
  }

  /**
   * Returns when the node was created, on the service's clock, or null if unknown, for example because its detail was
   * not read.
   */
  createdAtOf(node: NodeId): EpochMs | null {
    const slot = this.slotOf(node);
    const at = slot === null ? Number.NaN : this.fleet.createdAtMs.at(slot);
    return Number.isNaN(at) ? null : at;
  }

  /**
   * Returns the `max_age` of a policy for each source. Without one, it is the time for which the plan considers the
   * data fresh.
   */
  maxAgeOf(spec: PolicySpec | null): MaxAgeOf {
    return (source) => spec?.maxAgeMs ?? this.latest?.plan[source]?.freshMs ?? 0;
  }

  /** Returns the last snapshot in the form that expressions read. */
  data(): ScopeData {
    const { fleet, sessions } = this.latest!.snapshot;
    return { fleet, sessions, serviceTime: this.#client.serviceTime, aggregates: fleetAggregates(fleet) };
  }

  /**
   * Returns what expressions read at `now`: the last snapshot, or an earlier one, without what is older than {@link
   * maxAgeOf} or was observed before the machine was last suspended.
   */
  input(spec: PolicySpec | null, now: MonotonicMs, data = this.data()): EvaluationInput {
    const maxAgeOf = this.maxAgeOf(spec);
    const sinceSuspensionMs = now - this.#suspendedAt() - TICK_MS;
    return { data, maxAgeOf: (source) => Math.min(maxAgeOf(source), sinceSuspensionMs), now };
  }

  /** Returns the durations of the timers of a policy. */
  timerDurations(policy: Policy): TimerDurations {
    const { forMs, clearForMs } = policy.spec;
    return { forMs, clearForMs, gapMsMax: Math.max(...policySources(policy).map(this.maxAgeOf(policy.spec))) };
  }

  /** Evaluates a policy on the node in a slot. */
  evaluate(policy: Policy, slot: number, now: MonotonicMs): PolicyEvaluation {
    return evaluatePolicy(policy, slot, this.input(policy.spec, now));
  }
}
