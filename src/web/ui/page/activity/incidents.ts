import type { ActivityLine } from "./activity-lines.ts";

/** Holds of many nodes by the same policy for the same reasons, newest first. */
export interface Incident {
  /**
   * Its policy, reasons and place among equal incidents, newest first. It stays the same while lines are added to the
   * incident or dropped, and changes when a newer equal incident begins.
   */
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
export function groupHolds(lines: readonly ActivityLine[]): readonly (ActivityLine | Incident)[] {
  const open = new Map<string, ActivityLine[]>();
  const groups: { readonly key: string; readonly lines: ActivityLine[] }[] = [];
  const groupOf = new Map<ActivityLine, ActivityLine[]>();
  for (const line of lines) {
    if (line.blockers.length === 0) continue;
    const reasons = [...new Set(line.blockers.map(({ reason }) => reason))].sort().join(" ");
    const key = `${line.policy} ${line.isDryRun} ${reasons}`;
    let group = open.get(key);
    if (group === undefined || Date.parse(group.at(-1)!.at) - Date.parse(line.at) > INCIDENT_GAP_MS) {
      group = [];
      groups.push({ key, lines: group });
      open.set(key, group);
    }
    group.push(line);
    groupOf.set(line, group);
  }
  const incidents = new Map<ActivityLine[], Incident>();
  const counts = new Map<string, number>();
  for (const { key, lines: group } of groups) {
    if (new Set(group.map(({ node }) => node)).size < INCIDENT_NODES_MIN) continue;
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    incidents.set(group, { key: `incident ${key} ${count}`, lines: group });
  }
  return lines.flatMap((line): readonly (ActivityLine | Incident)[] => {
    const group = groupOf.get(line);
    const incident = group && incidents.get(group);
    if (incident === undefined) return [line];
    return incident.lines[0] === line ? [incident] : [];
  });
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
