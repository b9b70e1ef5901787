import { type DurationMs, HOUR_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";

/**
 * A node went bad: a policy's condition became true that was observed not to hold before. What was true when it was looked
 * at for the first time (after a start, under another text, after untrusted data) is not an onset.
 */
export interface Onset {
  readonly policy: string;
  readonly node: NodeId;
  /** Region or country of the node, by `safety.correlated.by`. */
  readonly place: string;
  readonly at: EpochMs;
}

/**
 * Nodes of one region or country that failed together; they are not acted on.
 *
 *   begins: enough onsets in one place within the time ──▶ lasts ◀──▶ cools down ──▶ over
 *   lasts → cools down: fewer of its nodes are bad than {@link nodesToContinue}
 *   lasts or cools down → over: {@link INCIDENT_MS_MAX} after the last onset
 */
export interface Incident {
  readonly place: string;
  /** Its first onset. */
  readonly from: EpochMs;
  /** Its last onset. */
  readonly to: EpochMs;
  /** All nodes that went bad with it, those that have recovered too. */
  readonly nodes: ReadonlySet<NodeId>;
  /** End of its cool-down; null: it lasts. */
  readonly until: EpochMs | null;
}

/** An incident ends this long after its last onset: after that, the policies or an operator handle its nodes. */
export const INCIDENT_MS_MAX: DurationMs = 6 * HOUR_MS;

/** Returns how many of its nodes must be unhealthy for an incident to last: half of them, but at least `size`. */
export const nodesToContinue = ({ nodes }: Incident, size: number): number => Math.max(size, Math.ceil(nodes.size / 2));

/** Onsets that can still be part of an incident that begins. */
export const recentOnsets = (onsets: readonly Onset[], now: EpochMs, withinMs: DurationMs): readonly Onset[] =>
  onsets.some(({ at }) => at < now - withinMs) ? onsets.filter(({ at }) => at >= now - withinMs) : onsets;

/**
 * The incidents after some onsets. `withinMs` is at least what two walks take, because nodes that go dark together are not
 * all seen in one walk. `sizeOf`: how many nodes of a place make an incident.
 */
export function addOnsets(
  before: readonly Incident[],
  onsets: readonly Onset[],
  withinMs: DurationMs,
  sizeOf: (place: string) => number,
): readonly Incident[] {
  let incidents = before;
  for (const [place, onsetsOfPlace] of Map.groupBy(onsets, (onset) => onset.place)) {
    for (const span of findClusters(onsetsOfPlace, withinMs, sizeOf(place))) {
      incidents = mergeIncident(incidents, { place, ...span, nodes: new Set(), until: null });
    }
    incidents = incidents.map((incident) =>
      incident.place === place ? extendIncident(incident, onsetsOfPlace, withinMs) : incident,
    );
  }
  return incidents;
}

/** Returns the incidents with one more, merged with those of its region or country that it overlaps. */
export function mergeIncident(incidents: readonly Incident[], more: Incident): readonly Incident[] {
  const isSame = ({ place, from, to }: Incident) => place === more.place && from <= more.to && more.from <= to;
  const same = incidents.filter(isSame);
  const combined: Incident = {
    place: more.place,
    from: Math.min(more.from, ...same.map(({ from }) => from)),
    to: Math.max(more.to, ...same.map(({ to }) => to)),
    nodes: new Set([...same.flatMap(({ nodes }) => [...nodes]), ...more.nodes]),
    until: more.until,
  };
  return [...incidents.filter((each) => !isSame(each)), combined];
}

/** The incident with the nodes that went bad during it, or within the time before or after. */
function extendIncident(incident: Incident, onsets: readonly Onset[], withinMs: DurationMs): Incident {
  const { from, to, nodes } = incident;
  const newOnsets = onsets.filter(({ node, at }) => at >= from - withinMs && at <= to + withinMs && !nodes.has(node));
  return newOnsets.length === 0
    ? incident
    : { ...incident, nodes: new Set([...nodes, ...newOnsets.map(({ node }) => node)]) };
}

/** The incidents that are not over as of `now`. `isBad`: whether a node is bad now. */
export function updateIncidents(
  before: readonly Incident[],
  isBad: (node: NodeId) => boolean,
  {
    now,
    cooldownMs,
    sizeOf,
  }: {
    readonly now: EpochMs;
    readonly cooldownMs: DurationMs;
    readonly sizeOf: (place: string) => number;
  },
): readonly Incident[] {
  return before.flatMap((incident) => {
    if (now >= incident.to + INCIDENT_MS_MAX) return [];
    const bad = [...incident.nodes].filter(isBad).length;
    if (bad >= nodesToContinue(incident, sizeOf(incident.place))) {
      return incident.until === null ? incident : { ...incident, until: null };
    }
    const until = incident.until ?? now + cooldownMs;
    if (now >= until) return [];
    return until === incident.until ? incident : { ...incident, until };
  });
}

/** The incident that a node is part of; null: none. */
export const findIncident = (incidents: readonly Incident[], node: NodeId): Incident | null =>
  incidents.find(({ nodes }) => nodes.has(node)) ?? null;

/** Returns spans of onsets in which at least `size` different nodes fail within `withinMs`. */
function findClusters(onsets: readonly Onset[], withinMs: DurationMs, size: number) {
  const sorted = onsets.toSorted((a, b) => a.at - b.at);
  // Usually there is none, which is found without counting nodes.
  if (!sorted.some(({ at }, index) => index >= size - 1 && at - sorted[index - size + 1]!.at <= withinMs)) return [];
  const found: { from: EpochMs; to: EpochMs }[] = [];
  // Onsets of each node within the window that ends with the one looked at: a node is counted once.
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
