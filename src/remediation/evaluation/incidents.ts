import type { NodeId } from "../../model/node.ts";
import { type ActivePolicy, isShadow, surveyFleet } from "../../policy/facts.ts";
import { type Incident, incidentsNow, merged, type Onset, recentOnsets, withOnsets } from "../../policy/guards/correlated-failure.ts";
import { incidentSize } from "../../policy/guards/limits.ts";
import { nodeSight } from "./candidates.ts";
import { activePolicies, type Ward } from "../context.ts";

/** Incidents of all policies and of those that act, with the onsets that may still become one. */
export interface IncidentTracker {
  /** Of dry runs, which all policies count for, or of the policies that act. */
  current(shadow: boolean): readonly Incident[];
  /** Takes in nodes that went bad now, by policy. */
  add(onsets: ReadonlyMap<string, readonly NodeId[]>, policies: readonly ActivePolicy[]): void;
  /** Takes over what a dry run saw: incidents with a node that is bad under `policies`, which act from now on. */
  takeOver(policies: readonly ActivePolicy[]): void;
  /** Ends what is over. Not to be called while fleet data is not trusted: timers that were taken back show no recovery. */
  end(policies: readonly ActivePolicy[]): void;
  /** What the journal keeps. */
  row(): unknown;
}

/** The fact that keeps incidents and recent onsets. */
export const INCIDENTS = "warden.correlated";
/** Nodes that go dark as one are not all seen in one walk. */
const WALKS_OF_INCIDENT = 2;

interface IncidentsRow {
  readonly onsets: readonly Onset[];
  readonly real: readonly IncidentRow[];
  readonly shadow: readonly IncidentRow[];
}

type IncidentRow = Omit<Incident, "nodes"> & { readonly nodes: readonly NodeId[] };

/** Creates a tracker of what the journal keeps. */
export function createIncidentTracker(ward: Ward): IncidentTracker {
  const { books, rules } = ward;
  const { casebook } = books;
  const text = casebook.fact(INCIDENTS);
  const kept: IncidentsRow = text === null ? { onsets: [], real: [], shadow: [] } : (JSON.parse(text) as IncidentsRow);
  let onsets = kept.onsets;
  let real: readonly Incident[] = kept.real.map(incidentFrom);
  let shadowed: readonly Incident[] = kept.shadow.map(incidentFrom);

  const withinMs = () =>
    Math.max(rules.safety.correlated.withinMs, WALKS_OF_INCIDENT * (ward.view?.plan.nodes?.pacedMs ?? 0));

  /** How many nodes of a place make an incident. */
  function sizes(): (place: string) => number {
    const survey = surveyFleet(ward.view!.snapshot.fleet, casebook, activePolicies(ward), false);
    const places = survey.places[rules.safety.correlated.by];
    return (place) => incidentSize(rules.safety, places.get(place)?.nodes ?? 0);
  }

  const badUnder = (policies: readonly ActivePolicy[]) => (node: NodeId) =>
    policies.some(({ policy }) => casebook.timer(policy.rule.name, node).state !== "inactive");

  return {
    current: (shadow) => (shadow ? shadowed : real),
    add(news, policies) {
      const now = books.now();
      const { by } = rules.safety.correlated;
      const more = [...news].flatMap(([policy, nodes]) =>
        nodes.flatMap((node): Onset[] => {
          const sight = nodeSight(ward, node);
          return sight === null ? [] : [{ policy, node, place: sight[by], at: now }];
        }),
      );
      onsets = recentOnsets([...onsets, ...more], now, withinMs());
      if (more.length === 0) return;
      const sizeOf = sizes();
      const acting = new Set(policies.filter((each) => !isShadow(each)).map(({ policy }) => policy.rule.name));
      const ofActing = onsets.filter(({ policy }) => acting.has(policy));
      real = withOnsets(real, ofActing, withinMs(), sizeOf);
      shadowed = withOnsets(shadowed, onsets, withinMs(), sizeOf);
    },
    takeOver(policies) {
      const isBad = badUnder(policies);
      for (const incident of shadowed) if ([...incident.nodes].some(isBad)) real = merged(real, incident);
    },
    end(policies) {
      if (real.length === 0 && shadowed.length === 0) return;
      const terms = { now: books.now(), cooldownMs: rules.safety.stormCooldownMs, sizeOf: sizes() };
      const acting = policies.filter((each) => !isShadow(each));
      real = incidentsNow(real, badUnder(acting), terms);
      shadowed = incidentsNow(shadowed, badUnder(policies), terms);
    },
    row: (): IncidentsRow => ({ onsets, real: real.map(incidentRow), shadow: shadowed.map(incidentRow) }),
  };
}

const incidentRow = (incident: Incident): IncidentRow => ({ ...incident, nodes: [...incident.nodes] });
const incidentFrom = (row: IncidentRow): Incident => ({ ...row, nodes: new Set(row.nodes) });
