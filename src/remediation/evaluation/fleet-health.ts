import { MINUTE_MS } from "../../base/duration.ts";
import { oncePerObject } from "../../base/once-per-key.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import { lostSince } from "../../policy/episodes/episode-states.ts";
import { countFleet, type FleetCounts } from "../../policy/fleet-counts.ts";
import type { GuardFacts } from "../../policy/guards/guard-types.ts";
import { effectiveLimits } from "../../policy/guards/safety-limits.ts";
import {
  type Breaker,
  CLOSED_BREAKER,
  evaluateStorm,
  type FiringNode,
  formatCauses,
  recordFirings,
  type Storm,
} from "../../policy/guards/storm-and-breaker.ts";
import { type ActivePolicy, isDryRun } from "../../policy/policy.ts";
import type { DecisionContext } from "../context.ts";
import type { PendingUpdate } from "../state/journaled-state.ts";
import { type ClockAdvance, movedTime } from "../state/moved-times.ts";
import {
  INCIDENTS_FACT,
  IncidentTracker,
  isActingUnder,
  type NodeUnderPolicy,
  type UnhealthyNode,
} from "./incidents.ts";

/** Nodes whose state under a policy changed in an evaluation of the policies. */
export interface ObservedChanges {
  /** Nodes that began to fire. */
  readonly firing: readonly NodeUnderPolicy[];
  /** Nodes that began to meet the condition of a policy. */
  readonly unhealthy: readonly UnhealthyNode[];
}

interface StormAndBreaker {
  breaker: Breaker;
  storm: Storm | null;
}

/** Key of the fact that holds the circuit breaker. */
const BREAKER_FACT = "remediation.breaker";
/** Key of the fact that holds the storm. */
export const STORM_FACT = "remediation.storm";
/**
 * Key of the fact that holds the policies whose firing nodes the breaker counts, which are those that acted at its last
 * update.
 */
const ACTING_POLICIES_FACT = "remediation.acting_policies";
/** Returns an immutable value as JSON. It is formatted once, because after a mass event it names most of the fleet. */
const jsonOf = oncePerObject((value: object): string => JSON.stringify(value));

/** How far the end of a storm may move before it is journaled again. */
const STORM_REWRITE_MS = MINUTE_MS;

/** Tracks the storm, the circuit breaker and incidents, for real actions and for dry runs, and journals them. */
export class FleetHealth {
  readonly #context: DecisionContext;
  readonly #incidents: IncidentTracker;
  readonly #real: StormAndBreaker;
  /** The state of dry runs. It is not journaled, and starts over with each restart and reload. */
  readonly #dryRun: StormAndBreaker = { breaker: CLOSED_BREAKER, storm: null };
  #countedPolicies: readonly string[];
  /**
   * The time up to which the breaker has counted lost nodes. It is not journaled. After a restart, all losses within the
   * breaker's period are counted, except those that it already has.
   */
  #lossesCountedUntil: EpochMs;
  #stormWrittenAt: EpochMs = Number.NEGATIVE_INFINITY;

  /** Continues with what the journal holds. */
  constructor(context: DecisionContext) {
    const { remediationState, config } = context;
    const now = remediationState.now();
    const { records } = remediationState;
    const storm = records.jsonFact<Storm>(STORM_FACT);
    this.#context = context;
    this.#incidents = new IncidentTracker(context);
    this.#countedPolicies = records.jsonFact<string[]>(ACTING_POLICIES_FACT) ?? [];
    this.#real = {
      breaker: records.jsonFact<Breaker>(BREAKER_FACT) ?? CLOSED_BREAKER,
      // A storm that was active when the process stopped may have lasted until now, so its cooldown starts over.
      storm: storm === null || !storm.isActive ? storm : { ...storm, until: now + config.safety.stormCooldownMs },
    };
    const { resetAt = 0 } = this.#real.breaker;
    this.#lossesCountedUntil = Math.max(resetAt, now - config.safety.breaker.withinMs);
  }

  /** Returns the storm, the circuit breaker and the incidents in the form that guards read. */
  state(dryRun: boolean): Pick<GuardFacts, "storm" | "breaker" | "incidents"> {
    return { ...(dryRun ? this.#dryRun : this.#real), incidents: this.#incidents.current(dryRun) };
  }

  /**
   * Counts what an evaluation observed. Returns the changes to journal in the same transaction as its timers, so that a
   * crash between two transactions loses nothing that limits count.
   */
  recordChanges({ firing, unhealthy }: ObservedChanges): readonly JournalChange[] {
    const policies = this.#context.policies.active();
    this.#adoptPolicies(policies);
    this.#updateBreaker(this.#real, firing.filter(isActingUnder(policies)));
    this.#updateBreaker(this.#dryRun, firing);
    this.#incidents.add(unhealthy, policies);
    return this.#changedCounts();
  }

  /**
   * Moves times with the journal's clock if they are from while it was behind: those of the nodes that the breaker counted,
   * so that they stay within its period, those of incidents, and the end of a storm's cooldown. Losses from before a
   * downtime are not counted again.
   */
  followClock(advance: ClockAdvance): void {
    this.#incidents.followClock(advance);
    this.#lossesCountedUntil += advance.byMs;
    for (const state of [this.#real, this.#dryRun]) {
      const { breaker, storm } = state;
      if (storm !== null) state.storm = { ...storm, until: movedTime(storm.until, advance) };
      const firings = breaker.firings.map((firing) => ({ ...firing, at: movedTime(firing.at, advance) }));
      state.breaker = { ...breaker, firings };
    }
  }

  /** Updates the storm, the breaker and the incidents, and journals them. `isUntrusted`: fleet data is not trusted. */
  update(isUntrusted: boolean): void {
    const { policies, remediationState, config } = this.#context;
    const active = policies.active();
    const previousStorm = this.#real.storm;
    this.#adoptPolicies(active);
    const counts = this.#countFleet(false);
    const { firings } = this.#real.breaker;
    const isNewLoss = (episode: Episode) =>
      lostSince(episode) > this.#lossesCountedUntil &&
      !firings.some(({ node, at }) => node === episode.node && at >= lostSince(episode));
    const losses = counts.lost.filter(isNewLoss).map(({ node }) => ({ node, policy: null }));
    this.#updateBreaker(this.#real, losses);
    this.#lossesCountedUntil = remediationState.now();
    this.#updateBreaker(this.#dryRun, []);
    // The breaker of dry runs closes automatically when its time is over.
    const { open } = this.#dryRun.breaker;
    if (open !== null && remediationState.now() - open.openedAt > config.safety.breaker.withinMs)
      this.#dryRun.breaker = CLOSED_BREAKER;
    this.#updateStorm(this.#real, counts);
    this.#updateStorm(this.#dryRun, this.#countFleet(true));
    // Timers that were reset because data is not trusted don't show that a node recovered.
    if (!isUntrusted) this.#incidents.end(active);
    const changes = [...this.#changedCounts(), ...this.#changedStorm(previousStorm)];
    if (changes.length > 0) remediationState.record(changes);
  }

  /**
   * Closes the breaker if it is open, once that is journaled. Nodes that fire now are not counted again, not even under
   * the policies `reset`, which act again.
   */
  resetBreaker(reset: readonly string[]): PendingUpdate {
    const counted = [...new Set([...this.#countedPolicies, ...reset])];
    const isOpen = this.#real.breaker.open !== null;
    const closed: Breaker = { ...CLOSED_BREAKER, resetAt: this.#context.remediationState.now() };
    const change = { kind: "fact", key: BREAKER_FACT, value: JSON.stringify(closed) } as const;
    return {
      changes: [
        ...(isOpen ? [change] : []),
        { kind: "fact", key: ACTING_POLICIES_FACT, value: JSON.stringify(counted) },
      ],
      apply: () => {
        // If it was not open, it may have counted nodes or opened in the meantime, and stays as it is.
        if (isOpen) this.#real.breaker = closed;
        this.#countedPolicies = counted;
      },
    };
  }

  /**
   * Adopts policies that have begun to act since the last update. Nodes that fired under them in a dry run count now,
   * and incidents of dry runs hold the nodes that are still unhealthy.
   */
  #adoptPolicies(policies: readonly ActivePolicy[]): void {
    const acting = policies.filter((policy) => !isDryRun(policy));
    const added = acting.filter(({ policy }) => !this.#countedPolicies.includes(policy.spec.name));
    this.#countedPolicies = acting.map(({ policy }) => policy.spec.name);
    if (added.length === 0) return;
    const firing = added.flatMap(({ policy: { spec } }) =>
      this.#context.remediationState.records.firingNodes(spec.name).map((node) => ({ node, policy: spec.name })),
    );
    if (firing.length > 0) this.#updateBreaker(this.#real, firing);
    this.#incidents.adoptPolicies(added);
  }

  #updateBreaker(state: StormAndBreaker, firing: readonly Omit<FiringNode, "at">[]): void {
    const { observed, remediationState, config } = this.#context;
    state.breaker = recordFirings(state.breaker, firing, {
      now: remediationState.now(),
      withinMs: config.safety.breaker.withinMs,
      limit: effectiveLimits(config.safety, observed.fleet.count).breaker,
    });
  }

  #updateStorm(state: StormAndBreaker, { nodes, unhealthy, unhealthyBy }: FleetCounts): void {
    const { remediationState, config } = this.#context;
    const limit = effectiveLimits(config.safety, nodes).maxUnhealthy;
    const { stormCooldownMs } = config.safety;
    const counts = { unhealthy, nodes, limit, causes: formatCauses(unhealthyBy) };
    state.storm = evaluateStorm(state.storm, counts, remediationState.now(), stormCooldownMs);
  }

  #countFleet(dryRun: boolean): FleetCounts {
    const { observed, policies, remediationState } = this.#context;
    return countFleet(observed.fleet, remediationState.records, policies.active(), dryRun, remediationState.now());
  }

  #changedCounts(): JournalChange[] {
    return [
      ...this.#changedFact(ACTING_POLICIES_FACT, this.#countedPolicies),
      ...this.#changedFact(BREAKER_FACT, this.#real.breaker),
      ...this.#changedFact(INCIDENTS_FACT, this.#incidents.row()),
    ];
  }

  /**
   * Returns the change to journal if the storm changed. Its end moves with every evaluation, which is not journaled
   * each time.
   */
  #changedStorm(previous: Storm | null): JournalChange[] {
    const { storm } = this.#real;
    const now = this.#context.remediationState.now();
    const hasChanged = (storm === null) !== (previous === null) || storm?.isActive !== previous?.isActive;
    if (!hasChanged && now - this.#stormWrittenAt < STORM_REWRITE_MS) return [];
    const changes = this.#changedFact(STORM_FACT, storm);
    if (changes.length > 0) this.#stormWrittenAt = now;
    return changes;
  }

  #changedFact(key: string, value: object | null): JournalChange[] {
    const text = value === null ? "null" : jsonOf(value);
    return text === this.#context.remediationState.records.fact(key) ? [] : [{ kind: "fact", key, value: text }];
  }
}
