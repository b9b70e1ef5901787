import type { NodeId } from "../../model/node.ts";
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

/** Incidents of all policies and of those that act, with the onsets that may still become one. */
export interface IncidentTracker {
  /** Of dry runs, which all policies count for, or of the policies that act. */
  current(dryRun: boolean): readonly Incident[];
  /** Adds nodes that became unhealthy now, by policy. */
  add(onsets: ReadonlyMap<string, readonly NodeId[]>, policies: readonly ActivePolicy[]): void;
  /** Adopts incidents of dry runs that have an unhealthy node under `policies`, which act from now on. */
  adoptPolicies(policies: readonly ActivePolicy[]): void;
  /** Ends incidents that are over. Not to be called while fleet data is not trusted: reset timers show no recovery. */
  end(policies: readonly ActivePolicy[]): void;
  /** What the journal keeps. */
  row(): unknown;
}

/** The fact that keeps incidents and recent onsets. */
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
  const text = records.fact(INCIDENTS);
  const stored: IncidentsFact =
    text === null ? { onsets: [], real: [], shadow: [] } : (JSON.parse(text) as IncidentsFact);
  let onsets = stored.onsets;
  let real: readonly Incident[] = stored.real.map(fromIncidentFact);
  let dryRunIncidents: readonly Incident[] = stored.shadow.map(fromIncidentFact);

  const withinMs = () =>
    Math.max(
      rules.safety.correlated.withinMs,
      WALKS_PER_INCIDENT * (context.observed.latest?.plan.nodes?.pacedMs ?? 0),
    );

  /** Returns how many nodes of a region or country make an incident. */
  function nodesMinByDomain(): (domain: string) => number {
    const fleetCounts = countFleet(context.observed.fleet, records, context.policies.active(), false);
    const domains = fleetCounts.domains[rules.safety.correlated.by];
    return (domain) => incidentNodesMin(rules.safety, domains.get(domain)?.nodes ?? 0);
  }

  const unhealthyUnder = (policies: readonly ActivePolicy[]) => (node: NodeId) =>
    policies.some(({ policy }) => records.timer(policy.rule.name, node).state !== "inactive");

  return {
    current: (dryRun) => (dryRun ? dryRunIncidents : real),
    add(news, policies) {
      const now = remediationState.now();
      const { by } = rules.safety.correlated;
      const more = [...news].flatMap(([policy, nodes]) =>
        nodes.flatMap((node): Onset[] => {
          const trust = observeNode(context, node);
          return trust === null ? [] : [{ policy, node, place: trust[by], at: now }];
        }),
      );
      onsets = recentOnsets([...onsets, ...more], now, withinMs());
      if (more.length === 0) return;
      const nodesMinOf = nodesMinByDomain();
      const acting = new Set(policies.filter((each) => !isDryRun(each)).map(({ policy }) => policy.rule.name));
      const ofEnforcedPolicies = onsets.filter(({ policy }) => acting.has(policy));
      real = addOnsets(real, ofEnforcedPolicies, withinMs(), nodesMinOf);
      dryRunIncidents = addOnsets(dryRunIncidents, onsets, withinMs(), nodesMinOf);
    },
    adoptPolicies(policies) {
      const isBad = unhealthyUnder(policies);
      for (const incident of dryRunIncidents) if ([...incident.nodes].some(isBad)) real = mergeIncident(real, incident);
    },
    end(policies) {
      if (real.length === 0 && dryRunIncidents.length === 0) return;
      const terms = {
        now: remediationState.now(),
        cooldownMs: rules.safety.stormCooldownMs,
        sizeOf: nodesMinByDomain(),
      };
      const acting = policies.filter((each) => !isDryRun(each));
      real = updateIncidents(real, unhealthyUnder(acting), terms);
      dryRunIncidents = updateIncidents(dryRunIncidents, unhealthyUnder(policies), terms);
    },
    row: (): IncidentsFact => ({ onsets, real: real.map(toIncidentFact), shadow: dryRunIncidents.map(toIncidentFact) }),
  };
}

const toIncidentFact = (incident: Incident): IncidentFact => ({ ...incident, nodes: [...incident.nodes] });
const fromIncidentFact = (row: IncidentFact): Incident => ({ ...row, nodes: new Set(row.nodes) });
