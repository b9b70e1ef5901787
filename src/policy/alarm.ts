import type { NodeId } from "../model/node.ts";
import type { Safety } from "../model/safety.ts";
import type { EpochMs } from "../model/time.ts";
import { incidentSize } from "./limits.ts";

/** A node that began to fire. */
export interface Firing {
  readonly node: NodeId;
  readonly at: EpochMs;
}

/** The breaker: counts nodes that begin to fire; once open, it stays so until a person resets it. */
export interface Breaker {
  /** Of the time that counts, one a node: the last. */
  readonly firings: readonly Firing[];
  readonly open: { readonly openedAt: EpochMs; readonly nodes: number } | null;
}

/** Nothing counted, and closed. */
export const CLOSED_BREAKER: Breaker = { firings: [], open: null };

/**
 * Counts nodes that began to fire at `now`. `limit`: more than this open it. Only a node that begins to fire does so: a
 * fleet that is not all listed yet, and makes the limit small for a moment, does not.
 */
export function countFirings(
  breaker: Breaker,
  nodes: readonly NodeId[],
  { now, withinMs, limit }: { readonly now: EpochMs; readonly withinMs: number; readonly limit: number },
): Breaker {
  const begun = new Set(nodes);
  const kept = breaker.firings.filter(({ node, at }) => at > now - withinMs && !begun.has(node));
  if (begun.size === 0 && kept.length === breaker.firings.length) return breaker;
  if (breaker.open !== null) return { firings: [], open: breaker.open };
  const firings = [...kept, ...[...begun].map((node) => ({ node, at: now }))];
  return begun.size > 0 && firings.length > limit
    ? { firings: [], open: { openedAt: now, nodes: firings.length } }
    : { firings, open: null };
}

/** A storm lasts while too many are unhealthy, and for a cool-down after; `until` moves on for as long as it blows. */
export interface Storm {
  readonly since: EpochMs;
  readonly until: EpochMs;
  readonly blowing: boolean;
}

/** The storm as of `now`; null: all is calm, and the cool-down is over. */
export function weather(
  storm: Storm | null,
  unhealthy: { readonly nodes: number; readonly limit: number },
  now: EpochMs,
  cooldownMs: number,
): Storm | null {
  if (unhealthy.nodes > unhealthy.limit) {
    // A new breach ends the cool-down: the storm is the same one.
    return { since: storm?.since ?? now, until: now + cooldownMs, blowing: true };
  }
  if (storm === null || now >= storm.until) return null;
  return storm.blowing ? { ...storm, blowing: false } : storm;
}

/** Nodes of one place that went bad together. Those that went bad from `from` to `to` are not touched until `until`. */
export interface Incident {
  readonly place: string;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly nodes: number;
  readonly until: EpochMs;
}

/** A node that went bad: a policy's timer over it began to run. */
export interface Onset {
  readonly node: NodeId;
  readonly at: EpochMs;
}

/** Where bad nodes stand, and since when they are bad. */
export interface BadNodes {
  /** By place, in any order. A node has one for each policy that says so: what ails it shows in one before another. */
  readonly onsets: ReadonlyMap<string, readonly Onset[]>;
  /** By place: nodes that stand there. */
  readonly nodes: ReadonlyMap<string, number>;
}

/**
 * The incidents as of `now`: those that are seen, and those before that cool down. `withinMs` is at least what two walks
 * take, for nodes that go dark as one are not seen in one walk.
 */
export function incidentsNow(
  before: readonly Incident[],
  bad: BadNodes,
  safety: Safety,
  { now, withinMs }: { readonly now: EpochMs; readonly withinMs: number },
): readonly Incident[] {
  const seen = [...bad.onsets].flatMap(([place, onsets]) => {
    const size = incidentSize(safety, bad.nodes.get(place) ?? 0);
    return clusters(onsets, withinMs, size).map((cluster) => ({ place, ...cluster }));
  });
  const lasting = before.filter(({ until }) => until > now);
  const renewed = seen.map((incident) => {
    const known = lasting.filter((each) => each.place === incident.place && overlaps(each, incident));
    return {
      ...incident,
      from: Math.min(incident.from, ...known.map(({ from }) => from)),
      to: Math.max(incident.to, ...known.map(({ to }) => to)),
      nodes: Math.max(incident.nodes, ...known.map(({ nodes }) => nodes)),
      until: now + safety.stormCooldownMs,
    };
  });
  const cooling = lasting.filter((each) => !renewed.some((one) => one.place === each.place && overlaps(each, one)));
  return [...joined(renewed), ...cooling];
}

/** Two clusters that are both the continuation of one incident are one. */
function joined(incidents: readonly Incident[]): Incident[] {
  const whole: Incident[] = [];
  for (const each of incidents) {
    const index = whole.findIndex(({ place, ...span }) => place === each.place && overlaps(span, each));
    const known = whole[index];
    if (known === undefined) whole.push(each);
    else {
      const [from, to] = [Math.min(known.from, each.from), Math.max(known.to, each.to)];
      whole[index] = { ...each, from, to, nodes: Math.max(known.nodes, each.nodes) };
    }
  }
  return whole;
}

/** The incident that a node belongs to which went bad at `since`; null: none. */
export const incidentOf = (
  incidents: readonly Incident[],
  place: string,
  since: EpochMs,
  withinMs: number,
): Incident | null =>
  incidents.find(
    (incident) => incident.place === place && since >= incident.from - withinMs && since <= incident.to + withinMs,
  ) ?? null;

const overlaps = (one: Pick<Incident, "from" | "to">, other: Pick<Incident, "from" | "to">): boolean =>
  one.from <= other.to && other.from <= one.to;

/** Stretches of onsets in which at least `size` nodes lie within `withinMs` of each other. */
function clusters(onsets: readonly Onset[], withinMs: number, size: number) {
  const sorted = onsets.toSorted((a, b) => a.at - b.at);
  // On most days there is none, which is seen without counting nodes.
  if (!sorted.some(({ at }, index) => index >= size - 1 && at - sorted[index - size + 1]!.at <= withinMs)) return [];
  const found: { from: EpochMs; to: EpochMs; nodes: number }[] = [];
  // Onsets of each node within the window that ends with the one looked at: a node is counted once.
  const inWindow = new Map<NodeId, number>();
  let begin = 0;
  for (const { node, at } of sorted) {
    inWindow.set(node, (inWindow.get(node) ?? 0) + 1);
    for (; at - sorted[begin]!.at > withinMs; begin++) leave(inWindow, sorted[begin]!.node);
    const nodes = inWindow.size;
    if (nodes < size) continue;
    const from = sorted[begin]!.at;
    const last = found.at(-1);
    if (last !== undefined && from <= last.to) {
      found[found.length - 1] = { from: last.from, to: at, nodes: Math.max(last.nodes, nodes) };
    } else found.push({ from, to: at, nodes });
  }
  return found;
}

function leave(inWindow: Map<NodeId, number>, node: NodeId): void {
  const left = inWindow.get(node)! - 1;
  if (left > 0) inWindow.set(node, left);
  else inWindow.delete(node);
}
