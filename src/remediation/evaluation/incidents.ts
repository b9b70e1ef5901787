import type { NodeId } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { type ActivePolicy, countFleet, isDryRun } from "../../policy/facts.ts";
import {
  addOnsets,
  type Incident,
  mergeIncident,
  type Onset,
  recentOnsets,
  updateIncidents,
} from "../../policy/guards/correlated-failure.ts";
import { incidentNodesMin } from "../../policy/guards/limits.ts";
import type { CandidateDeps } from "./candidates.ts";
import { observeNode } from "./candidates.ts";

/** Tracks incidents, and the onsets that may still become part of one. */
export interface IncidentTracker {
  /** Returns the incidents of the policies that act; for dry runs, those of all policies. */
  current(dryRun: boolean): readonly Incident[];
  /** Adds nodes that became unhealthy now, by policy. */
  add(onsets: ReadonlyMap<string, readonly NodeId[]>, policies: readonly ActivePolicy[]): void;
  /** Adopts incidents of dry runs that have an unhealthy node under `policies`, which act from now on. */
  adoptPolicies(policies: readonly ActivePolicy[]): void;
  /** Ends incidents that are over. Must not be called while fleet data is not trusted: a reset timer is no recovery. */
  end(policies: readonly ActivePolicy[]): void;
  /** Returns what the journal stores. */
  row(): unknown;
}

/** Fact: incidents and recent onsets. */
export const INCIDENTS = "warden.correlated";
/** Nodes that fail together are not all observed in one walk. */
const WALKS_PER_INCIDENT = 2;

interface IncidentsFact {
  readonly onsets: readonly Onset[];
  readonly real: readonly IncidentFact[];
  readonly shadow: readonly IncidentFact[];
}

type IncidentFact = Omit<Incident, "nodes"> & { readonly nodes: readonly NodeId[] };

/** Creates a tracker with the incidents of the journal. */
export function createIncidentTracker(context: CandidateDeps): IncidentTracker {
  const { remediationState, rules } = context;
  const { records } = remediationState;
  const stored = JSON.parse(records.fact(INCIDENTS) ?? '{"onsets":[],"real":[],"shadow":[]}') as IncidentsFact;
  let onsets = stored.onsets;
  let realIncidents: readonly Incident[] = stored.real.map(fromIncidentFact);
  let dryRunIncidents: readonly Incident[] = stored.shadow.map(fromIncidentFact);

  const withinMs = () =>
    Math.max(
      rules.safety.correlated.withinMs,
      WALKS_PER_INCIDENT * (context.observed.latest?.plan.nodes?.pacedMs ?? 0),
    );

  /** Returns a function from a region or country to how many of its nodes make an incident. */
  function nodesMinByDomain(): (domain: string) => number {
    const fleetCounts = countFleet(context.observed.fleet, records, context.policies.active(), false);
    const domains = fleetCounts.domains[rules.safety.correlated.by];
    return (domain) => incidentNodesMin(rules.safety, domains.get(domain)?.nodes ?? 0);
  }

  const unhealthyUnder = (policies: readonly ActivePolicy[]) => (node: NodeId) =>
    policies.some(({ policy }) => records.timer(policy.rule.name, node).state !== "inactive");

  /** A node that has left the list has no region, and is skipped. */
  function onsetsOf(policy: string, nodes: readonly NodeId[], at: EpochMs): Onset[] {
    return nodes.flatMap((node) => {
      const observation = observeNode(context, node);
      return observation === null ? [] : [{ policy, node, place: observation[rules.safety.correlated.by], at }];
    });
  }

  return {
    current: (dryRun) => (dryRun ? dryRunIncidents : realIncidents),
    add(onsetNodes, policies) {
      const now = remediationState.now();
      const added = [...onsetNodes].flatMap(([policy, nodes]) => onsetsOf(policy, nodes, now));
      onsets = recentOnsets([...onsets, ...added], now, withinMs());
      if (added.length === 0) return;
      const nodesMin = nodesMinByDomain();
      const acting = new Set(policies.filter((each) => !isDryRun(each)).map(({ policy }) => policy.rule.name));
      const realOnsets = onsets.filter(({ policy }) => acting.has(policy));
      realIncidents = addOnsets(realIncidents, realOnsets, withinMs(), nodesMin);
      dryRunIncidents = addOnsets(dryRunIncidents, onsets, withinMs(), nodesMin);
    },
    adoptPolicies(policies) {
      const isUnhealthy = unhealthyUnder(policies);
      for (const incident of dryRunIncidents)
        if ([...incident.nodes].some(isUnhealthy)) realIncidents = mergeIncident(realIncidents, incident);
    },
    end(policies) {
      if (realIncidents.length === 0 && dryRunIncidents.length === 0) return;
      const options = {
        now: remediationState.now(),
        cooldownMs: rules.safety.stormCooldownMs,
        sizeOf: nodesMinByDomain(),
      };
      const acting = policies.filter((each) => !isDryRun(each));
      realIncidents = updateIncidents(realIncidents, unhealthyUnder(acting), options);
      dryRunIncidents = updateIncidents(dryRunIncidents, unhealthyUnder(policies), options);
    },
    row: (): IncidentsFact => ({
      onsets,
      real: realIncidents.map(toIncidentFact),
      shadow: dryRunIncidents.map(toIncidentFact),
    }),
  };
}

const toIncidentFact = (incident: Incident): IncidentFact => ({ ...incident, nodes: [...incident.nodes] });
const fromIncidentFact = (row: IncidentFact): Incident => ({ ...row, nodes: new Set(row.nodes) });
