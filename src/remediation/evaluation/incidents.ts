import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { countRecords } from "../../policy/cel/fleet-aggregates.ts";
import { countFleet, type DomainCount, NO_NODES } from "../../policy/fleet-counts.ts";
import {
  addOnsets,
  type Incident,
  joinIncidents,
  mergeIncident,
  type Onset,
  recentOnsets,
  updateIncidents,
} from "../../policy/guards/correlated-failure.ts";
import { incidentNodesMin, isIncidentAtFirst } from "../../policy/guards/safety-limits.ts";
import { type ActivePolicy, isDryRun } from "../../policy/policy.ts";
import type { DecisionContext } from "../context.ts";
import { type ClockAdvance, movedTime } from "../state/moved-times.ts";

/** Key of the fact that holds the incidents and recent onsets. */
export const INCIDENTS_FACT = "remediation.incidents";

/** A node whose state under a policy changed. */
export interface NodeUnderPolicy {
  readonly node: NodeId;
  readonly policy: string;
}

/** A node that began to meet the condition of a policy. */
export interface UnhealthyNode extends NodeUnderPolicy {
  /** Whether it was observed not to meet the condition shortly before. If not, it may have met it for a long time. */
  readonly wasHealthy: boolean;
}

/** Number of walks whose failures may form one incident, because one walk may not show all nodes that fail together. */
const WALKS_PER_INCIDENT = 2;

/** What the journal stores. */
interface IncidentsFact {
  /** After a mass event they name most of the fleet, so what onsets have in common is stored once. */
  readonly onsetGroups: readonly OnsetGroup[];
  readonly real: readonly IncidentFact[];
  readonly dryRun: readonly IncidentFact[];
}

/** Onsets of one policy in one region or country at the same time. */
type OnsetGroup = Omit<Onset, "node"> & { readonly nodes: readonly NodeId[] };

type IncidentFact = Omit<Incident, "nodes"> & { readonly nodes: readonly NodeId[] };

/** Tracks incidents, and the onsets that may still become part of one. */
export class IncidentTracker {
  readonly #context: DecisionContext;
  #onsets: readonly Onset[];
  /** Incidents of the policies that act. */
  #real: readonly Incident[];
  /** Incidents of all policies, for dry runs. */
  #dryRun: readonly Incident[];
  /** What {@link row} returned last, and what it was made of. */
  #row: { readonly parts: readonly unknown[]; readonly fact: IncidentsFact } | null = null;

  /** Continues with the incidents of the journal. */
  constructor(context: DecisionContext) {
    const stored = context.remediationState.records.jsonFact<IncidentsFact>(INCIDENTS_FACT);
    this.#context = context;
    this.#onsets = stored?.onsetGroups.flatMap(fromOnsetGroup) ?? [];
    this.#real = stored?.real.map(fromIncidentFact) ?? [];
    this.#dryRun = stored?.dryRun.map(fromIncidentFact) ?? [];
  }

  /** Returns the incidents of the policies that act or, for dry runs, those of all policies. */
  current(dryRun: boolean): readonly Incident[] {
    return dryRun ? this.#dryRun : this.#real;
  }

  /** Adds nodes that became unhealthy now. */
  add(nodes: readonly UnhealthyNode[], policies: readonly ActivePolicy[]): void {
    const now = this.#context.remediationState.now();
    const withinMs = this.#withinMs();
    const countOf = this.#countByDomain();
    const isActing = isActingUnder(policies);
    // A node that has left the list has no region.
    const before = nodes.filter(({ node, wasHealthy }) => wasHealthy && this.#context.observed.slotOf(node) !== null);
    const first = this.#toOnsets(this.#downAmong(nodes.filter(({ wasHealthy }) => !wasHealthy)), now);
    if (first.length > 0) {
      this.#real = joinIncidents(this.#real, first.filter(isActing));
      this.#dryRun = joinIncidents(this.#dryRun, first);
    }
    const added = [...this.#toOnsets(before, now), ...this.#correlatedAtFirst(first, policies, now, countOf)];
    this.#onsets = recentOnsets(added.length === 0 ? this.#onsets : [...this.#onsets, ...added], now, withinMs);
    if (added.length === 0) return;
    const nodesMin = this.#nodesMinByDomain(countOf);
    this.#real = addOnsets(this.#real, this.#onsets.filter(isActing), withinMs, nodesMin);
    this.#dryRun = addOnsets(this.#dryRun, this.#onsets, withinMs, nodesMin);
  }

  /** Adopts incidents of dry runs that have an unhealthy node under `policies`, which act from now on. */
  adoptPolicies(policies: readonly ActivePolicy[]): void {
    const isUnhealthy = this.#isUnhealthyUnder(policies);
    for (const incident of this.#dryRun)
      if ([...incident.nodes].some(isUnhealthy)) this.#real = mergeIncident(this.#real, incident);
  }

  /**
   * Ends incidents that are over. Must not be called while fleet data is not trusted, because a reset timer is not a
   * recovery.
   */
  end(policies: readonly ActivePolicy[]): void {
    if (this.#real.length === 0 && this.#dryRun.length === 0) return;
    const { remediationState, config } = this.#context;
    const { stormCooldownMs } = config.safety;
    const [now, nodesMin] = [remediationState.now(), this.#nodesMinByDomain()];
    const acting = policies.filter((policy) => !isDryRun(policy));
    this.#real = updateIncidents(this.#real, this.#isUnhealthyUnder(acting), now, stormCooldownMs, nodesMin);
    this.#dryRun = updateIncidents(this.#dryRun, this.#isUnhealthyUnder(policies), now, stormCooldownMs, nodesMin);
  }

  /** Moves what began while the journal's clock was behind, so that these incidents do not end early. */
  followClock(advance: ClockAdvance): void {
    const moved = (at: EpochMs) => movedTime(at, advance);
    const movedIncident = (incident: Incident): Incident => {
      const { from, to, until } = incident;
      return { ...incident, from: moved(from), to: moved(to), until: until === null ? null : moved(until) };
    };
    this.#onsets = this.#onsets.map((onset) => ({ ...onset, at: moved(onset.at) }));
    this.#real = this.#real.map(movedIncident);
    this.#dryRun = this.#dryRun.map(movedIncident);
  }

  /** Returns what the journal stores; the same object if nothing changed since the last call. */
  row(): IncidentsFact {
    const parts = [this.#onsets, this.#real, this.#dryRun];
    if (!parts.every((part, index) => part === this.#row?.parts[index])) {
      const [real, dryRun] = [this.#real.map(toIncidentFact), this.#dryRun.map(toIncidentFact)];
      this.#row = { parts, fact: { onsetGroups: toOnsetGroups(this.#onsets), real, dryRun } };
    }
    return this.#row!.fact;
  }

  #withinMs(): DurationMs {
    const { observed, config } = this.#context;
    return Math.max(
      config.safety.correlated.withinMs,
      WALKS_PER_INCIDENT * (observed.latest?.plan.nodes?.pacedMs ?? 0),
    );
  }

  /** Returns a function that returns how many nodes of a region or country are an incident. */
  #nodesMinByDomain(countOf = this.#countByDomain()): (domain: string) => number {
    return (domain) => incidentNodesMin(this.#context.config.safety, countOf(domain).nodes);
  }

  /** Returns a function that returns the node counts of a region or country. The fleet is counted with its first call. */
  #countByDomain(): (domain: string) => DomainCount {
    const { observed, remediationState, config } = this.#context;
    const { records } = remediationState;
    const { by } = config.safety.correlated;
    let domains: ReadonlyMap<string, DomainCount> | null = null;
    return (domain) => {
      // Without policies no timers are counted, which the number of nodes does not depend on.
      domains ??= countFleet(observed.fleet, records, [], false, remediationState.now()).domains[by];
      return domains.get(domain) ?? NO_NODES;
    };
  }

  #isUnhealthyUnder(policies: readonly ActivePolicy[]): (node: NodeId) => boolean {
    const { records } = this.#context.remediationState;
    return (node) => policies.some(({ policy }) => records.timer(policy.spec.name, node).state !== "inactive");
  }

  /**
   * Returns the nodes that are down in those regions or countries of `first` in which they are one incident ({@link
   * isIncidentAtFirst}), without those that are recent onsets already. Includes nodes that were evaluated shortly before,
   * because the first evaluation may see only a part of the fleet. Going back by the time for which data is fresh is
   * enough, because data is not trusted if it takes longer to see all of the fleet.
   */
  #correlatedAtFirst(
    first: readonly Onset[],
    policies: readonly ActivePolicy[],
    now: EpochMs,
    countOf: (domain: string) => DomainCount,
  ): Onset[] {
    if (first.length === 0) return [];
    const { config, observed, remediationState } = this.#context;
    const domains = new Set(first.map(({ domain }) => domain));
    const sinceMin = now - Math.max(this.#withinMs(), observed.latest?.plan.nodes?.freshMs ?? 0);
    const unhealthy = policies.flatMap(({ policy: { spec } }) =>
      [...remediationState.records.timersOf(spec.name)]
        .filter(([, { since }]) => since !== null && since >= sinceMin)
        .map(([node]) => ({ node, policy: spec.name })),
    );
    const down = this.#toOnsets(this.#downAmong(unhealthy), now).filter(({ domain }) => domains.has(domain));
    const correlated = [...Map.groupBy(down, ({ domain }) => domain)].flatMap(([domain, together]) => {
      const nodes = new Set(together.map(({ node }) => node)).size;
      return isIncidentAtFirst(config.safety, nodes, () => countOf(domain)) ? together : [];
    });
    const keyOf = ({ policy, node }: Onset) => JSON.stringify([policy, node]);
    const known = new Set(recentOnsets(this.#onsets, now, this.#withinMs()).map(keyOf));
    return correlated.filter((onset) => !known.has(keyOf(onset)));
  }

  /** Returns those of the nodes that are listed as offline or with an unknown status. */
  #downAmong(nodes: readonly NodeUnderPolicy[]): readonly NodeUnderPolicy[] {
    const { observed } = this.#context;
    const { isUnhealthy } = countRecords(observed.fleet);
    return nodes.filter(({ node }) => isUnhealthy[observed.slotOf(node) ?? -1] === 1);
  }

  #toOnsets(nodes: readonly NodeUnderPolicy[], at: EpochMs): Onset[] {
    const { observed, config } = this.#context;
    const { by } = config.safety.correlated;
    return nodes.map(({ node, policy }) => ({ node, policy, domain: observed.locationOf(node)[by], at }));
  }
}

/** Returns a filter for items of policies that act. */
export function isActingUnder(policies: readonly ActivePolicy[]): (item: { readonly policy: string }) => boolean {
  const acting = new Set(policies.filter((active) => !isDryRun(active)).map(({ policy }) => policy.spec.name));
  return ({ policy }) => acting.has(policy);
}

const toIncidentFact = (incident: Incident): IncidentFact => ({ ...incident, nodes: [...incident.nodes] });
const fromIncidentFact = (incident: IncidentFact): Incident => ({ ...incident, nodes: new Set(incident.nodes) });

function toOnsetGroups(onsets: readonly Onset[]): OnsetGroup[] {
  const groups = Map.groupBy(onsets, ({ policy, domain, at }) => `${at} ${policy} ${domain}`);
  return [...groups.values()].map((group) => {
    const { policy, domain, at } = group[0]!;
    return { policy, domain, at, nodes: group.map(({ node }) => node) };
  });
}

const fromOnsetGroup = ({ nodes, ...onset }: OnsetGroup): Onset[] => nodes.map((node) => ({ ...onset, node }));
