import { DAY_MS, MINUTE_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import { canProceed, findCanary } from "../../policy/decision.ts";
import {
  type ActivePolicy,
  countFleet,
  type FleetCounts,
  type GuardFacts,
  isDryRun,
  isInFlight,
} from "../../policy/facts.ts";
import type { Incident } from "../../policy/guards/correlated-failure.ts";
import { assumedActionTimes, effectiveLimits } from "../../policy/guards/limits.ts";
import {
  type Breaker,
  CLOSED_BREAKER,
  evaluateStorm,
  recordFirings,
  type Storm,
} from "../../policy/guards/storm-and-breaker.ts";
import { windowBlockers } from "../../policy/guards/time-window.ts";
import type { Policy } from "../../policy/policy.ts";
import type { RemediationContext } from "../context.ts";
import type { PendingUpdate } from "../state/journaled-state.ts";
import type { CandidateDeps } from "./candidates.ts";
import { buildCandidate } from "./candidates.ts";
import type { ExternalBlockerCache } from "./external-blockers.ts";
import { createIncidentTracker, INCIDENTS } from "./incidents.ts";
import type { InventoryTrust } from "./inventory-trust.ts";

type FleetHealthDeps = CandidateDeps & Pick<RemediationContext, "apiKey" | "client">;

/** What an evaluation of the fleet observed, by policy. */
export interface ObservedChanges {
  /** Nodes that began to fire. */
  readonly firing: ReadonlyMap<string, readonly NodeId[]>;
  /** Nodes that became unhealthy and were observed to be healthy before. */
  readonly onsets: ReadonlyMap<string, readonly NodeId[]>;
}

/** The state of the fleet that decisions depend on, for real actions and for dry runs. */
export interface FleetHealth {
  /**
   * Counts observed changes. Returns what to write in the same transaction as the timers of that evaluation, so that
   * a kill between two transactions loses nothing that limits count.
   */
  recordChanges(news: ObservedChanges): readonly JournalChange[];
  /** Updates storm, breaker and incidents. `isBroken`: fleet data is not trusted. */
  update(isBroken: boolean): void;
  guardFacts(dryRun: boolean, trust: InventoryTrust): GuardFacts;
  breaker(): Breaker;
  storm(): Storm | null;
  incidents(): readonly Incident[];
  /**
   * Closes the breaker if it is open, once that was written down. What fires now is not counted again, also under the
   * policies `reset`, which act again.
   */
  resetBreaker(reset: readonly string[]): PendingUpdate;
}

interface AlertState {
  breaker: Breaker;
  storm: Storm | null;
}

const BREAKER = "warden.breaker";
/** The fact that keeps the fleet-wide outage. */
export const STORM = "warden.storm";
/** Policies whose firing nodes the breaker has counted: those that acted when it counted last. */
const ACTING = "warden.acting";
/** The fact that says since when, and why, everything is paused. */
export const PAUSED = "warden.paused";
/** How long the end of a storm may move on before it is written down again. */
const STORM_REWRITE_MS = MINUTE_MS;

/** Creates the fleet health that the journal remembers. */
export function createFleetHealth(context: FleetHealthDeps, externalBlockers: ExternalBlockerCache): FleetHealth {
  const { remediationState, rules, clock, client } = context;
  const { records } = remediationState;
  const intervals = new Map(rules.intervals.map((interval) => [interval.name, interval]));
  const incidents = createIncidentTracker(context);
  let counted: readonly string[] = parseFact<string[]>(records.fact(ACTING)) ?? [];
  const real: AlertState = {
    breaker: parseFact<Breaker>(records.fact(BREAKER)) ?? CLOSED_BREAKER,
    storm: resumedStorm(),
  };
  // Dry runs have a breaker and a storm of their own, which start over with the process.
  const dryRunAlerts: AlertState = { breaker: CLOSED_BREAKER, storm: null };
  /** Losses after this instant are new to the breaker. Those of the last hour are counted again after a restart. */
  let lossesCountedUntil = remediationState.now() - rules.safety.breaker.withinMs;
  const written = new Map<string, { at: EpochMs; text: string }>();

  /** A storm that lasted when the process stopped may have lasted until now: its cool-down starts over. */
  function resumedStorm(): Storm | null {
    const storm = parseFact<Storm>(records.fact(STORM));
    return storm?.blowing === true ? { ...storm, until: remediationState.now() + rules.safety.stormCooldownMs } : storm;
  }

  const fleetCounts = (dryRun: boolean): FleetCounts =>
    countFleet(context.observed.fleet, records, context.policies.active(), dryRun);

  function updateBreaker(alerts: AlertState, firing: readonly NodeId[]): void {
    const { withinMs: breakerWithin } = rules.safety.breaker;
    const limit = effectiveLimits(rules.safety, context.observed.fleet.count).breaker;
    alerts.breaker = recordFirings(alerts.breaker, firing, {
      now: remediationState.now(),
      withinMs: breakerWithin,
      limit,
    });
  }

  /**
   * Policies that act since a moment ago: what fired under them in a dry run counts now, and the incidents that the dry
   * run saw hold the nodes that are still bad.
   */
  function adoptPolicies(policies: readonly ActivePolicy[]): void {
    const acting = policies.filter((each) => !isDryRun(each));
    const names = acting.map(({ policy }) => policy.rule.name);
    const added = acting.filter(({ policy }) => !counted.includes(policy.rule.name));
    counted = names;
    if (added.length === 0) return;
    const firing = added.flatMap(({ policy }) =>
      [...records.timersOf(policy.rule.name)].flatMap(([node, { state }]) => (state === "firing" ? [node] : [])),
    );
    if (firing.length > 0) updateBreaker(real, firing);
    incidents.adoptPolicies(added);
  }

  function updateStorm(alerts: AlertState, { nodes, unhealthy }: FleetCounts): void {
    const limit = effectiveLimits(rules.safety, nodes).maxUnhealthy;
    const { stormCooldownMs } = rules.safety;
    alerts.storm = evaluateStorm(alerts.storm, { nodes: unhealthy, limit }, remediationState.now(), stormCooldownMs);
  }

  /** A fact, where it has changed. */
  function changed(key: string, value: unknown): JournalChange[] {
    const text = JSON.stringify(value);
    if (text === (written.get(key)?.text ?? records.fact(key))) return [];
    written.set(key, { at: remediationState.now(), text });
    return [{ kind: "fact", key, value: text }];
  }

  function changedCounts(): JournalChange[] {
    return [...changed(ACTING, counted), ...changed(BREAKER, real.breaker), ...changed(INCIDENTS, incidents.row())];
  }

  /** The end of a storm moves with every evaluation, which alone is not written each time. */
  function changedStorm(before: Storm | null): JournalChange[] {
    const hasChanged = (real.storm === null) !== (before === null) || real.storm?.blowing !== before?.blowing;
    const isDue = remediationState.now() - (written.get(STORM)?.at ?? Number.NEGATIVE_INFINITY) >= STORM_REWRITE_MS;
    return hasChanged || isDue ? changed(STORM, real.storm) : [];
  }

  function inFlight(dryRun: boolean): Action[] {
    return [...records.actions()].filter((action) => action.shadow === dryRun && isInFlight(action));
  }

  /** Evaluates the windows of each policy once, because many candidates ask. */
  function policyBlockersNow(): GuardFacts["policyBlockers"] {
    const at = instants();
    const known = new Map<Policy, readonly Blocker[]>();
    return (policy) => {
      const found = known.get(policy) ?? windowBlockers(policy.rule.windows, intervals, at);
      known.set(policy, found);
      return [...found, ...externalBlockers.blockers(policy)];
    };
  }

  function instants(): EpochMs[] {
    const service = client.serviceTime(clock.monotonic());
    return service === null ? [clock.now()] : [clock.now(), service];
  }

  function pausedSince(): string | null {
    const paused = parseFact<{ at: EpochMs; reason: string; operator?: string }>(records.fact(PAUSED));
    if (paused === null) return null;
    const by = paused.operator === undefined ? "" : ` by ${paused.operator}`;
    return `since ${new Date(paused.at).toISOString()}${by}: ${paused.reason}`;
  }

  return {
    recordChanges(observedChanges) {
      const policies = context.policies.active();
      adoptPolicies(policies);
      const firing = policies.filter(({ policy }) => observedChanges.firing.has(policy.rule.name));
      const nodesOf = (of: readonly ActivePolicy[]) =>
        of.flatMap(({ policy }) => observedChanges.firing.get(policy.rule.name)!);
      updateBreaker(real, nodesOf(firing.filter((each) => !isDryRun(each))));
      updateBreaker(dryRunAlerts, nodesOf(firing));
      incidents.add(observedChanges.onsets, policies);
      return changedCounts();
    },
    update(isBroken) {
      const policies = context.policies.active();
      const before = real.storm;
      adoptPolicies(policies);
      const seen = fleetCounts(false);
      updateBreaker(
        real,
        seen.lost.flatMap(({ node, unlistedAt }) => (unlistedAt! > lossesCountedUntil ? [node] : [])),
      );
      lossesCountedUntil = remediationState.now();
      updateBreaker(dryRunAlerts, []);
      // The breaker of dry runs closes automatically when its time is over.
      const { open } = dryRunAlerts.breaker;
      if (open !== null && remediationState.now() - open.openedAt > rules.safety.breaker.withinMs) {
        dryRunAlerts.breaker = CLOSED_BREAKER;
      }
      updateStorm(real, seen);
      updateStorm(dryRunAlerts, fleetCounts(true));
      // Timers that were reset because data is not trusted don't show that a node recovered.
      if (!isBroken) incidents.end(policies);
      const changes = [...changedCounts(), ...changedStorm(before)];
      if (changes.length > 0) remediationState.record(changes);
    },
    guardFacts(dryRun, trust) {
      const now = remediationState.now();
      const seen = fleetCounts(dryRun);
      const alerts = dryRun ? dryRunAlerts : real;
      const { perMs } = rules.safety.maxActions;
      const assumed = dryRun ? [] : assumedActionTimes(remediationState.firstStartedAt(), rules.safety, now);
      const canaries = new Map<Policy, Episode | null>();
      const facts: GuardFacts = {
        now,
        instants: instants(),
        dryRun,
        safety: rules.safety,
        limits: effectiveLimits(rules.safety, seen.nodes),
        fleetCounts: seen,
        records,
        pauseDetail: pausedSince(),
        journalError: remediationState.journalProblem(),
        credentialsError: dryRun ? null : context.apiKey.holdReason(),
        trustBlockers: trust.blockers,
        ...alerts,
        incidents: incidents.current(dryRun),
        inFlight: inFlight(dryRun),
        sentAtTimes: [...assumed, ...actionTimesSince(records.actions(), dryRun, now - Math.min(perMs, DAY_MS))],
        assumedActionCount: assumed.length,
        policyBlockers: policyBlockersNow(),
        canaryEpisode(active) {
          const found = canaries.get(active.policy);
          if (found !== undefined) return found;
          const canary = findCanary(active.policy, records, ({ node }) => {
            const candidate = buildCandidate(context, active, node);
            return candidate !== null && canProceed(candidate, facts);
          });
          canaries.set(active.policy, canary);
          return canary;
        },
      };
      return facts;
    },
    breaker: () => real.breaker,
    storm: () => real.storm,
    incidents: () => incidents.current(false),
    resetBreaker(reset) {
      const acting = [...new Set([...counted, ...reset])];
      const breaker = real.breaker.open === null ? real.breaker : CLOSED_BREAKER;
      const facts = [
        [BREAKER, JSON.stringify(breaker)],
        [ACTING, JSON.stringify(acting)],
      ] as const;
      return {
        changes: facts.map(([key, value]) => ({ kind: "fact", key, value })),
        apply() {
          real.breaker = breaker;
          counted = acting;
          for (const [key, text] of facts) written.set(key, { at: remediationState.now(), text });
        },
      };
    },
  };
}

/** Returns when actions were sent after `since`. */
function actionTimesSince(actions: Iterable<Action>, dryRun: boolean, since: EpochMs): EpochMs[] {
  const instants: EpochMs[] = [];
  for (const { shadow: isShadow, sentAt } of actions) {
    if (isShadow === dryRun && sentAt !== null && sentAt > since) instants.push(sentAt);
  }
  return instants;
}

const parseFact = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));
