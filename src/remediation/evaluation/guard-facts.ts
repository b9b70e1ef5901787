import { DAY_MS } from "../../base/duration.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import { type EpochMs, formatTime } from "../../model/time.ts";
import { canProceed, findCanary } from "../../policy/decision.ts";
import { type ActivePolicy, countFleet, type GuardFacts, isInFlight } from "../../policy/facts.ts";
import { assumedActionTimes, effectiveLimits } from "../../policy/guards/limits.ts";
import { windowBlockers } from "../../policy/guards/time-window.ts";
import type { Policy } from "../../policy/policy.ts";
import type { RemediationContext } from "../context.ts";
import { pauseAt } from "../operator-holds.ts";
import { buildCandidate, type CandidateDeps } from "./candidates.ts";
import type { FleetHealth } from "./fleet-health.ts";
import type { InventoryTrustTracker } from "./inventory-trust.ts";

/** Returns the facts for real actions or for dry runs. */
export type FactsOf = (dryRun: boolean) => GuardFacts;

type FactsDeps = CandidateDeps & Pick<RemediationContext, "apiKey" | "client" | "externalBlockerCache">;

/** Collects the facts that guards read. */
export class GuardFactsCollector {
  readonly #context: FactsDeps;
  readonly #fleetHealth: FleetHealth;
  readonly #trustTracker: InventoryTrustTracker;

  constructor(context: FactsDeps, fleetHealth: FleetHealth, trustTracker: InventoryTrustTracker) {
    this.#context = context;
    this.#fleetHealth = fleetHealth;
    this.#trustTracker = trustTracker;
  }

  /** Returns a function that collects the facts for real actions and for dry runs only once each, on its first call. */
  collectOnce(): FactsOf {
    return oncePerKey(
      (dryRun: boolean) => dryRun,
      (dryRun) => this.collect(dryRun),
    );
  }

  /** Returns the current facts. */
  collect(dryRun: boolean): GuardFacts {
    const { apiKey, observed, policies, remediationState, rules } = this.#context;
    const { records } = remediationState;
    const trust = this.#trustTracker.current();
    const now = remediationState.now();
    const instants = this.#instants();
    const fleetCounts = countFleet(observed.fleet, records, policies.active(), dryRun);
    const assumed = dryRun ? [] : assumedActionTimes(remediationState.firstStartedAt(), rules.safety, now);
    const countedFrom = now - Math.min(rules.safety.maxActions.perMs, DAY_MS);
    const actions = [...records.actions()].filter(({ shadow }) => shadow === dryRun);
    const facts: GuardFacts = {
      now,
      instants,
      dryRun,
      safety: rules.safety,
      limits: effectiveLimits(rules.safety, fleetCounts.nodes),
      fleetCounts,
      records,
      nameOf: (node) => observed.nameOf(node),
      pauseDetail: this.#pauseDetail(),
      journalError: remediationState.journalProblem(),
      credentialsError: dryRun ? null : apiKey.holdReason(),
      trustBlockers: trust.blockers,
      ...this.#fleetHealth.state(dryRun),
      inFlight: actions.filter(isInFlight),
      sentAtTimes: [
        ...assumed,
        ...actions.flatMap(({ sentAt }) => (sentAt !== null && sentAt > countedFrom ? [sentAt] : [])),
      ],
      assumedActionCount: assumed.length,
      policyBlockers: this.#policyBlockersAt(instants),
      canaryEpisode: oncePerKey(
        ({ policy }: ActivePolicy) => policy,
        (active) =>
          findCanary(active.policy, records, ({ node }) => {
            const candidate = buildCandidate(this.#context, active, node);
            return candidate !== null && canProceed(candidate, facts);
          }),
      ),
    };
    return facts;
  }

  /** Returns the time of the wall clock, and that of the service's clock if it is known. */
  #instants(): EpochMs[] {
    const { client, clock } = this.#context;
    const serviceNow = client.serviceTime(clock.monotonic());
    return serviceNow === null ? [clock.now()] : [clock.now(), serviceNow];
  }

  /** Evaluates the windows of each policy only once, because many candidates need them. */
  #policyBlockersAt(instants: readonly EpochMs[]): GuardFacts["policyBlockers"] {
    const { externalBlockerCache, rules } = this.#context;
    const intervals = new Map(rules.intervals.map((interval) => [interval.name, interval]));
    const blockersOfWindows = oncePerKey(
      (policy: Policy) => policy,
      ({ rule }): readonly Blocker[] => windowBlockers(rule.windows, intervals, instants),
    );
    return (policy) => [...blockersOfWindows(policy), ...externalBlockerCache.blockers(policy)];
  }

  #pauseDetail(): string | null {
    const { remediationState } = this.#context;
    const pause = pauseAt(remediationState.records, remediationState.now());
    if (pause === null) return null;
    const { at, until = null, reason, operator } = pause;
    const by = operator === undefined ? "" : ` by ${operator}`;
    const end = until === null ? "" : `, until ${formatTime(until)}`;
    return `since ${formatTime(at)}${by}${end}: ${reason}`;
  }
}

/** Returns `compute` with a cache of its results by key. */
function oncePerKey<T, Key, Value>(keyOf: (subject: T) => Key, compute: (subject: T) => Value): (subject: T) => Value {
  const results = new Map<Key, { readonly value: Value }>();
  return (subject) => {
    const result = results.get(keyOf(subject)) ?? { value: compute(subject) };
    results.set(keyOf(subject), result);
    return result.value;
  };
}
