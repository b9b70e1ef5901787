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

/**
 * Replaces each group of equal holds of many nodes with an incident in the place of its newest hold. `lines` are newest
 * first.
 */
export function groupIncidents(lines: readonly ActivityLine[]): readonly (ActivityLine | Incident)[] {
  const incidents = new Map<ActivityLine, Incident>();
  for (const group of groupsOf(lines)) {
    if (new Set(group.map(({ node }) => node)).size < INCIDENT_NODES_MIN) continue;
    const incident = { key: `incident ${group.at(-1)!.key}`, lines: group };
    for (const line of group) incidents.set(line, incident);
  }
  return lines.flatMap((line): readonly (ActivityLine | Incident)[] => {
    const incident = incidents.get(line);
    if (incident === undefined) return [line];
    return incident.lines[0] === line ? [incident] : [];
  });
}

/** Returns the keys of the lines of an incident, or the key of a single line. */
export const lineKeys = (item: ActivityLine | Incident): readonly string[] =>
  "lines" in item ? item.lines.map(({ key }) => key) : [item.key];

/**
 * Returns whether an incident or line is open: whether one of its lines is in `open`, the keys of the open lines. Adds
 * the newest line of an open incident, because the others may be dropped.
 */
export function isOpenItem(item: ActivityLine | Incident, open: Set<string>): boolean {
  const keys = lineKeys(item);
  const isOpen = keys.some((key) => open.has(key));
  if (isOpen) open.add(keys[0]!);
  return isOpen;
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

/** Returns the latest hold of each node of an incident, newest first. There may be tens of thousands. */
export function latestByNode({ lines }: Incident): readonly ActivityLine[] {
  const nodes = new Set<string | null>();
  return lines.filter(({ node }) => nodes.size < nodes.add(node).size);
}
