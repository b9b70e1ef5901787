import { eachInSteps, type Steps } from "../../base/steps.ts";
import { SlotSet } from "../../base/typed-column.ts";
import type { NodeId } from "../../model/node.ts";
import type { Fleet, Snapshot } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { runInSlices } from "../../platform/event-loop.ts";
import { occupiedSlots, type ScopeData } from "../../policy/cel/field-readers.ts";
import { isUnderWay } from "../../policy/episodes/episode-states.ts";
import { evaluatePolicy, isStatusUnknown, prepareEvaluation } from "../../policy/evaluation.ts";
import { isDryRun, type Policy } from "../../policy/policy.ts";
import type { TimerChange } from "../../policy/remediation-records.ts";
import { INACTIVE, markUnseen, markUntrusted, observeCondition } from "../../policy/timer.ts";
import type { DecisionContext, RemediationContext } from "../context.ts";
import { hasLeft } from "../observed-fleet.ts";
import { splitByNode } from "../state/timer-parts.ts";
import type { FleetHealth } from "./fleet-health.ts";
import type { NodeUnderPolicy, UnhealthyNode } from "./incidents.ts";

/** When the data of a snapshot was observed. */
interface ObservationTimes extends Pick<Fleet, "settledAt" | "listedAt" | "detailedAt"> {
  readonly sessionsAt: MonotonicMs | null;
}

/** Number of evaluations between two checks of the time, which take a tenth of a millisecond. */
const EVALUATIONS_PER_STEP = 200;

/** Number of slots whose ids are compared between two checks of the time. */
const SLOTS_PER_STEP = 4_096;

type EvaluatorContext = Omit<DecisionContext, "config"> & Pick<RemediationContext, "log">;

/** Runs the timers of all policies over the observed nodes. */
export class PolicyEvaluator {
  readonly #context: EvaluatorContext;
  readonly #fleetHealth: Pick<FleetHealth, "recordChanges">;
  /** By policy, the slots of the nodes whose condition was unknown when it was last evaluated. */
  readonly #unknownSlots = new Map<string, SlotSet>();
  /** By policy, how many nodes it matched when it was last evaluated on all of them. */
  readonly #matched = new Map<string, { readonly nodes: number; readonly of: number }>();
  /** The policies that were reported to match no node. */
  readonly #unmatched = new Set<string>();
  /** The ids of the fleet that was last evaluated, by slot. */
  #comparedIds: readonly NodeId[] = [];
  /** A node is added before its timer changes, and kept until it is counted, even if the evaluation fails. */
  #uncounted = noUncountedNodes();
  #lastEvaluated: ObservationTimes | null = null;

  constructor(context: EvaluatorContext, fleetHealth: Pick<FleetHealth, "recordChanges">) {
    this.#context = context;
    this.#fleetHealth = fleetHealth;
  }

  /**
   * Evaluates every node that was observed again. `replaced` are ids that now belong to a different node, whose timers
   * start over. Changes to fleet health are journaled no later than the timers that they come from. A mass event
   * changes so many timers that they are journaled in several transactions. A crash between two of them loses some
   * timers, which start over, but nothing that limits count. Yields to the event loop in between. If the evaluation of
   * a node throws, earlier changes are still counted and journaled.
   */
  async evaluate(replaced: ReadonlySet<NodeId>): Promise<void> {
    const { clock, remediationState } = this.#context;
    const changes: TimerChange[] = [];
    try {
      await runInSlices(this.#evaluateSnapshot(replaced, changes), clock);
    } finally {
      const [first = [], ...others] = await runInSlices(splitByNode(changes), clock);
      const counted = this.#fleetHealth.recordChanges(this.#uncounted);
      this.#uncounted = noUncountedNodes();
      await remediationState.recordInParts([[...counted, ...first], ...others]);
    }
  }

  /** Returns the number of nodes whose condition was unknown when the policy was evaluated last. */
  unknownNodes(policy: string): number {
    return this.#unknownSlots.get(policy)?.size ?? 0;
  }

  /** Returns how many of the nodes a policy matches, or null if it was not evaluated on all nodes yet. */
  matchedNodes(policy: string) {
    return this.#matched.get(policy) ?? null;
  }

  *#evaluateSnapshot(replaced: ReadonlySet<NodeId>, changes: TimerChange[]): Steps<void> {
    const { observed, policies } = this.#context;
    const { snapshot } = observed.latest!;
    // A newer snapshot may replace this one between two steps.
    const data = observed.data();
    const slots = yield* this.#slotsToEvaluate(snapshot);
    yield* this.#forgetRemovedNodes(snapshot.fleet, replaced, changes);
    yield* this.#forgetReassignedSlots(snapshot.fleet.ids);
    for (const policy of policies.all) {
      const { name } = policy.spec;
      const unknownSlots = this.#unknownSlots.get(name) ?? new SlotSet();
      this.#unknownSlots.set(name, unknownSlots);
      const pass = preparePass(this.#context, policy, data, unknownSlots);
      if (slots.length > 0) yield* prepareEvaluation(policy, pass.input);
      for (let begin = 0; begin < slots.length; begin += EVALUATIONS_PER_STEP) {
        for (const slot of slots.subarray(begin, begin + EVALUATIONS_PER_STEP))
          this.#updateTimer(pass, snapshot.fleet.ids[slot]!, slot, changes);
        yield;
      }
      if (slots.length === snapshot.fleet.count) this.#recordMatches(pass, slots.length);
    }
    const { settledAt, listedAt, detailedAt } = snapshot.fleet;
    this.#lastEvaluated = { settledAt, listedAt, detailedAt, sessionsAt: snapshot.sessions?.settledAt ?? null };
  }

  /** Records an evaluation on all nodes, and warns once about a policy that matches none. */
  #recordMatches({ policy: { spec }, matches: { selected, excluded } }: PolicyPass, nodes: number): void {
    const { name, match } = spec;
    this.#matched.set(name, { nodes: selected, of: nodes });
    if (nodes === 0 || excluded < nodes || this.#unmatched.has(name)) return;
    this.#unmatched.add(name);
    this.#context.log.warn({ policy: name, match, nodes }, "the policy matches no node");
  }

  /** Evaluates a node, and adds what has changed. */
  #updateTimer(pass: PolicyPass, node: NodeId, slot: number, changes: TimerChange[]): void {
    const { policy, durations, lastHealthyAt, unknownSlots, now } = pass;
    const { name } = policy.spec;
    const { records } = this.#context.remediationState;
    const timer = records.timer(name, node);
    const evaluation = evaluatePolicy(policy, slot, pass.input);
    const { verdict, matched, at, newest } = evaluation;
    if (matched === true) pass.matches.selected++;
    else if (matched === false) pass.matches.excluded++;
    const wasHealthy = newest - lastHealthyAt[slot]! <= durations.gapMsMax;
    if (verdict === "false" || (wasHealthy && isStatusUnknown(evaluation))) lastHealthyAt[slot] = newest;
    const wasTooOld = timer.last !== null && newest - timer.last.newest > durations.gapMsMax;
    if (verdict === "unknown" || wasTooOld) unknownSlots.add(slot);
    else unknownSlots.delete(slot);
    // Most nodes are healthy: their timers stay inactive.
    if (timer === INACTIVE && verdict !== "true") return;
    // A real action or quarantine also makes the node unavailable to a policy that is in dry_run by now.
    const clearFrozen = records
      .openEpisodesOf(node)
      .some((episode) => episode.policy === name && (pass.dryRun || !episode.dryRun) && isUnderWay(episode));
    const contradictedAt = pass.otherStatusAt?.at(slot) ?? Number.NaN;
    const next = observeCondition(timer, { verdict, at, newest, contradictedAt, now }, durations, { clearFrozen });
    if (next === timer) return;
    const { firing, unhealthy } = this.#uncounted;
    // A lapsed timer was counted when it first fired.
    if (next.state === "firing" && timer.state !== "firing" && timer.state !== "lapsed")
      firing.push({ node, policy: name });
    if (timer.state === "inactive") unhealthy.push({ node, policy: name, wasHealthy });
    const createdAt = pass.createdAtMs.at(slot);
    changes.push(records.setTimer(name, node, next, Number.isNaN(createdAt) ? undefined : createdAt));
  }

  /** Resets pending timers, because fleet data is not trusted. */
  async markUntrusted(): Promise<void> {
    const { clock, remediationState } = this.#context;
    remediationState.lastHealthy.clear();
    const changes: TimerChange[] = [];
    await runInSlices(this.#resetTimers(changes), clock);
    await remediationState.recordInParts(await runInSlices(splitByNode(changes), clock));
  }

  *#resetTimers(changes: TimerChange[]): Steps<void> {
    const { records } = this.#context.remediationState;
    const now = this.#context.remediationState.now();
    for (const policy of records.policiesWithTimers()) {
      yield* eachInSteps(records.timersOf(policy), ([node, timer]) => {
        const next = markUntrusted(timer, now);
        if (next === timer) return;
        const change = records.setTimer(policy, node, next);
        if (next.state === "inactive") changes.push(change);
      });
    }
  }

  /** Forgets what was observed of nodes whose slots belong to others now, or are empty. */
  *#forgetReassignedSlots(ids: readonly NodeId[]): Steps<void> {
    if (ids === this.#comparedIds) return;
    const { lastHealthy } = this.#context.remediationState;
    for (let slot = 0; slot < ids.length; slot++) {
      if (slot % SLOTS_PER_STEP === 0) yield;
      if (!lastHealthy.assign(slot, ids[slot]!)) continue;
      for (const slots of this.#unknownSlots.values()) slots.delete(slot);
    }
    this.#comparedIds = ids;
  }

  /** Returns the slots that were observed again since the last evaluation that was completed. */
  *#slotsToEvaluate({ fleet, sessions }: Snapshot): Steps<Uint32Array> {
    const last = this.#lastEvaluated;
    const sessionsAt = sessions?.settledAt ?? null;
    const all = last === null || last.settledAt !== fleet.settledAt || last.sessionsAt !== sessionsAt;
    const slots = new Uint32Array(fleet.slots);
    let count = 0;
    const occupied = occupiedSlots(fleet.ids);
    yield;
    const isObserved = new Uint8Array(fleet.slots);
    if (all) isObserved.fill(1);
    else {
      // A walk that failed has shown the nodes of earlier pages.
      fleet.listedAt.markDifferences(last.listedAt, isObserved);
      yield;
      fleet.detailedAt.markDifferences(last.detailedAt, isObserved);
    }
    yield;
    for (let slot = 0; slot < fleet.slots; slot++)
      if (occupied[slot] === 1 && isObserved[slot] === 1) slots[count++] = slot;
    return slots.subarray(0, count);
  }

  /**
   * Drops the timers of nodes that left the list and of ids that belong to another node. If a node that left the list
   * has an open episode, its firing timer lapses instead.
   */
  *#forgetRemovedNodes(fleet: Fleet, replaced: ReadonlySet<NodeId>, changes: TimerChange[]): Steps<void> {
    const { records } = this.#context.remediationState;
    for (const policy of records.policiesWithTimers()) {
      yield* eachInSteps(records.timersOf(policy), ([node, timer]) => {
        const isGone = hasLeft(fleet, node);
        if (!isGone && !replaced.has(node)) return;
        const next = isGone && records.episodeUnder(policy, node) !== null ? markUnseen(timer) : INACTIVE;
        if (next !== timer) changes.push(records.setTimer(policy, node, next));
      });
    }
  }
}

/** Returns what the evaluation of one policy on a snapshot needs. */
function preparePass(
  { clock, observed, policies, remediationState }: EvaluatorContext,
  policy: Policy,
  data: ScopeData,
  unknownSlots: SlotSet,
) {
  const { createdAtMs, otherStatusAt, slots } = data.fleet;
  return {
    policy,
    input: observed.input(policy.spec, clock.monotonic(), data),
    /** The `created_at` of the nodes that are evaluated, by slot, or NaN if unknown. */
    createdAtMs,
    /** When a record last stated another status, by slot, or null if the condition does not depend on it. */
    otherStatusAt: readsStatus(policy) ? otherStatusAt : null,
    durations: observed.timerDurations(policy),
    dryRun: isDryRun(policies.activate(policy)),
    /** When each node was last observed to be healthy, by slot. */
    lastHealthyAt: remediationState.lastHealthy.under(policy.spec.name, slots),
    /** Slots of the nodes whose condition is unknown, or was until now because the data of their timer was too old. */
    unknownSlots,
    /** Number of nodes that `match` selects, and that it excludes. It is unknown for the others. */
    matches: { selected: 0, excluded: 0 },
    /** When the pass began, on the journal's clock. */
    now: remediationState.now(),
  };
}
type PolicyPass = ReturnType<typeof preparePass>;

/** Returns whether the condition of a policy depends on the status of its node. */
export const readsStatus = ({ match, when }: Policy): boolean =>
  [...(match?.fields ?? []), ...when.fields].some(({ name }) => name === "node.status");

/** Returns empty lists of nodes that began to fire or became unhealthy, and that limits don't count yet. */
const noUncountedNodes = () => ({ firing: [] as NodeUnderPolicy[], unhealthy: [] as UnhealthyNode[] });
