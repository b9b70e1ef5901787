import type { ActivityLine } from "./activity-lines.ts";

/** Holds of many nodes by the same policy for the same reasons, newest first. */
export interface Incident {
  readonly key: string;
  readonly lines: readonly ActivityLine[];
}

/** Minimum number of nodes of an incident. Fewer nodes have a line each. */
const INCIDENT_NODES_MIN = 3;
/** Maximum time between successive holds of one incident. */
const INCIDENT_GAP_MS = 600_000;

/** Groups equal holds of many nodes. An incident keeps its key while lines are added to it or dropped. */
export class IncidentGrouping {
  /** Key of the incident that each line was last part of, by the key of the line. */
  #keys: ReadonlyMap<string, string> = new Map();
  #incidents = 0;

  /**
   * Replaces each group of equal holds of many nodes with an incident in the place of its newest hold. `lines` are newest
   * first.
   */
  group(lines: readonly ActivityLine[]): readonly (ActivityLine | Incident)[] {
    const groups = groupsOf(lines);
    const incidents = new Map<ActivityLine, Incident>();
    const keys = new Map<string, string>();
    const taken = new Set<string | undefined>([undefined]);
    for (const group of groups) {
      if (new Set(group.map(({ node }) => node)).size < INCIDENT_NODES_MIN) continue;
      const known = group.map((line) => this.#keys.get(line.key)).find((key) => !taken.has(key));
      const incident = { key: known ?? `incident ${++this.#incidents}`, lines: group };
      taken.add(incident.key);
      for (const line of group) {
        incidents.set(line, incident);
        keys.set(line.key, incident.key);
      }
    }
    // Without holds, lines of other kinds are shown.
    if (groups.length > 0) this.#keys = keys;
    return lines.flatMap((line): readonly (ActivityLine | Incident)[] => {
      const incident = incidents.get(line);
      if (incident === undefined) return [line];
      return incident.lines[0] === line ? [incident] : [];
    });
  }
}

/** Returns the groups of equal holds that follow each other within {@link INCIDENT_GAP_MS}. */
function groupsOf(lines: readonly ActivityLine[]): readonly (readonly ActivityLine[])[] {
  const groups: ActivityLine[][] = [];
  const open = new Map<string, ActivityLine[]>();
  for (const line of lines) {
    if (line.blockers.length === 0) continue;
    const reasons = [...new Set(line.blockers.map(({ reason }) => reason))].sort().join(" ");
    const kind = `${line.policy} ${line.isDryRun} ${reasons}`;
    let group = open.get(kind);
    if (group === undefined || Date.parse(group.at(-1)!.at) - Date.parse(line.at) > INCIDENT_GAP_MS) {
      group = [];
      groups.push(group);
      open.set(kind, group);
    }
    group.push(line);
  }
  return groups;
}

/** Returns the latest hold of each node of an incident, newest first. */
export function latestByNode({ lines }: Incident): readonly ActivityLine[] {
  const nodes = new Set<string | null>();
  return lines.filter(({ node }) => {
    const isLatest = !nodes.has(node);
    nodes.add(node);
    return isLatest;
  });
}
