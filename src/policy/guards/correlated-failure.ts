import { type DurationMs, formatDuration, formatSecondsLeft, HOUR_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { type EpochMs, formatTime } from "../../model/time.ts";
import { defineSimpleGuard } from "./guard-types.ts";
import { incidentNodesMin } from "./safety-limits.ts";

/**
 * The moment at which a node became unhealthy: the condition of a policy was observed to be false, then true. If it is
 * true in its first evaluation (after a start, a change to the policy or untrusted data), this is the onset of all nodes
 * of that region or country that are offline or of unknown status and meet the condition, if they are most nodes there
 * or no node there is online.
 */
export interface Onset {
  readonly policy: string;
  readonly node: NodeId;
  /** Region or country of the node, by `safety.correlated.by`. */
  readonly domain: string;
  readonly at: EpochMs;
}

/**
 * Nodes of one region or country that failed together. No action is taken on them.
 *
 *   enough onsets in one region or country within the time ──▶ active ◀──▶ cooldown ──▶ over
 *   active → cooldown: fewer of its nodes are unhealthy than {@link nodesToContinue}
 *   active or cooldown → over: {@link INCIDENT_MS_MAX} after the last of these onsets
 */
export interface Incident {
  /** Region or country. */
  readonly domain: string;
  /** Times of the first and the last of the onsets that were enough for an incident. */
  readonly from: EpochMs;
  readonly to: EpochMs;
  /** All nodes that failed, including nodes that have recovered. */
  readonly nodes: ReadonlySet<NodeId>;
  /** End of the cooldown, or null if the incident is active. */
  readonly until: EpochMs | null;
}

/** An incident ends this long after {@link Incident.to}. From then on, policies or an operator handle its nodes. */
export const INCIDENT_MS_MAX: DurationMs = 6 * HOUR_MS;

/**
 * Returns how many of its nodes must be unhealthy for an incident to stay active: half of them, but at least `size`.
 */
export const nodesToContinue = ({ nodes }: Incident, size: number): number => Math.max(size, Math.ceil(nodes.size / 2));

/** Returns the onsets that can still be part of a new incident. */
export const recentOnsets = (onsets: readonly Onset[], now: EpochMs, withinMs: DurationMs): readonly Onset[] =>
  onsets.some(({ at }) => at < now - withinMs) ? onsets.filter(({ at }) => at >= now - withinMs) : onsets;

/**
 * Returns the incidents after some onsets. `withinMs` must be at least the duration of two walks, because one walk may
 * not show all nodes that fail together. `sizeOf` returns how many nodes of a region or country are an incident.
 */
export function addOnsets(
  incidentsBefore: readonly Incident[],
  onsets: readonly Onset[],
  withinMs: DurationMs,
  sizeOf: (domain: string) => number,
): readonly Incident[] {
  let incidents = incidentsBefore;
  for (const [domain, domainOnsets] of Map.groupBy(onsets, (onset) => onset.domain)) {
    for (const span of findClusters(domainOnsets, withinMs, sizeOf(domain))) {
      incidents = mergeIncident(incidents, { domain, ...span, nodes: new Set(), until: null });
    }
    incidents = incidents.map((incident) =>
      incident.domain === domain ? extendIncident(incident, domainOnsets, withinMs) : incident,
    );
  }
  return incidents;
}

/** Adds an incident, merged with the incidents of its region or country that it overlaps. */
export function mergeIncident(incidents: readonly Incident[], more: Incident): readonly Incident[] {
  const isSame = ({ domain, from, to }: Incident) => domain === more.domain && from <= more.to && more.from <= to;
  const same = incidents.filter(isSame);
  const combined: Incident = {
    domain: more.domain,
    from: Math.min(more.from, ...same.map(({ from }) => from)),
    to: Math.max(more.to, ...same.map(({ to }) => to)),
    nodes: new Set([...same.flatMap(({ nodes }) => [...nodes]), ...more.nodes]),
    until: more.until,
  };
  return [...incidents.filter((incident) => !isSame(incident)), combined];
}

/** Adds nodes that were down when first seen to the incidents of their region or country, with which they may have failed. */
export const joinIncidents = (
  incidents: readonly Incident[],
  down: readonly Pick<Onset, "node" | "domain">[],
): readonly Incident[] => incidents.map((incident) => addNodes(incident, down));

/** Adds the nodes that failed during an incident, or at most `withinMs` before or after it. */
function extendIncident(incident: Incident, onsets: readonly Onset[], withinMs: DurationMs): Incident {
  const { from, to } = incident;
  return addNodes(
    incident,
    onsets.filter(({ at }) => at >= from - withinMs && at <= to + withinMs),
  );
}

/** Adds the nodes of its region or country to an incident; returns the same object if it has all of them. */
function addNodes(incident: Incident, more: readonly Pick<Onset, "node" | "domain">[]): Incident {
  const added = more.filter(({ node, domain }) => domain === incident.domain && !incident.nodes.has(node));
  return added.length === 0
    ? incident
    : { ...incident, nodes: new Set([...incident.nodes, ...added.map(({ node }) => node)]) };
}

/**
 * Returns the incidents that are not over; the same array if nothing changed. `isUnhealthy` says whether a node is
 * unhealthy now.
 */
export function updateIncidents(
  incidents: readonly Incident[],
  isUnhealthy: (node: NodeId) => boolean,
  now: EpochMs,
  cooldownMs: DurationMs,
  sizeOf: (domain: string) => number,
): readonly Incident[] {
  const updated = incidents.flatMap((incident) => {
    if (now >= incident.to + INCIDENT_MS_MAX) return [];
    const nodesMin = nodesToContinue(incident, sizeOf(incident.domain));
    if (incident.nodes.values().filter(isUnhealthy).take(nodesMin).toArray().length === nodesMin)
      return incident.until === null ? incident : { ...incident, until: null };
    // The cooldown may have been shortened since it began.
    const until = Math.min(incident.until ?? Number.POSITIVE_INFINITY, now + cooldownMs);
    if (now >= until) return [];
    return until === incident.until ? incident : { ...incident, until };
  });
  const isSame =
    updated.length === incidents.length && updated.every((incident, index) => incident === incidents[index]);
  return isSame ? incidents : updated;
}

/** Returns the incident that a node is part of, or null if there is none. */
export const findIncident = (incidents: readonly Incident[], node: NodeId): Incident | null =>
  incidents.find(({ nodes }) => nodes.has(node)) ?? null;

/** Returns the time spans in which at least `size` different nodes fail within `withinMs`. */
function findClusters(onsets: readonly Onset[], withinMs: DurationMs, size: number) {
  const sorted = onsets.toSorted((a, b) => a.at - b.at);
  // Fast path: usually there is none, and no nodes need to be counted.
  if (!sorted.some(({ at }, index) => index >= size - 1 && at - sorted[index - size + 1]!.at <= withinMs)) return [];
  const found: { from: EpochMs; to: EpochMs }[] = [];
  // Number of onsets of each node within the window that ends with the current onset. A node counts once.
  const inWindow = new Map<NodeId, number>();
  let begin = 0;
  for (const { node, at } of sorted) {
    inWindow.set(node, (inWindow.get(node) ?? 0) + 1);
    for (; at - sorted[begin]!.at > withinMs; begin++) removeFromWindow(inWindow, sorted[begin]!.node);
    if (inWindow.size < size) continue;
    const from = sorted[begin]!.at;
    const last = found.at(-1);
    if (last !== undefined && from <= last.to) found[found.length - 1] = { from: last.from, to: at };
    else found.push({ from, to: at });
  }
  return found;
}

function removeFromWindow(inWindow: Map<NodeId, number>, node: NodeId): void {
  const left = inWindow.get(node)! - 1;
  if (left > 0) inWindow.set(node, left);
  else inWindow.delete(node);
}

/** Holds nodes of one failure domain that failed together. */
export const correlatedGuard = defineSimpleGuard({
  reason: "correlated",
  counts: "nodes of one region or country that became unhealthy within `safety.correlated.within`",
  condition: "there are at least `nodes` or `percent` of `safety.correlated`, whichever is smaller",
  ends: "automatically, `safety.storm_cooldown` after fewer than half of the incident's nodes, or too few for an incident, are still unhealthy, but at the latest 6 h after enough nodes last failed together",
  operatorAction: "find the common cause in that region or country",
  preventsEpisode: true,
  details: ({ node }, { incidents, safety, fleetCounts, now }) => {
    const incident = findIncident(incidents, node.id);
    if (incident === null) return [];
    const { by } = safety.correlated;
    const { domain, to, until, nodes } = incident;
    const latestEnd = to + INCIDENT_MS_MAX;
    const nodesMin = nodesToContinue(
      incident,
      incidentNodesMin(safety, fleetCounts.domains[by].get(domain)?.nodes ?? 0),
    );
    const end =
      until === null
        ? `it ends ${formatDuration(safety.stormCooldownMs)} after fewer than ${nodesMin} of them are unhealthy, and no later than ${formatTime(latestEnd)}`
        : `too few of them are still unhealthy; it ends in ${formatSecondsLeft(Math.min(until, latestEnd) - now)}`;
    const summary = `${nodes.size} nodes of the ${by} ${domain || "(none)"} failed together: treated as one incident`;
    return [`${summary}; ${end}`];
  },
});
