import { LISTED_TEXT_NAMES, LISTED_TEXTS, type ListedText, type NodeLabel } from "../../model/node.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { isFresh, type RenderInput, type Visibility } from "../families/family.ts";

/** Sees which slots may be shown. */
export function computeVisibility(input: RenderInput): Visibility {
  const { fleet, sessions } = input.snapshot;
  const sessionCounters = new Uint8Array(sessions?.nodes.slots ?? 0);
  for (let slot = 0; slot < sessionCounters.length; slot++) {
    if (sessions!.nodes.ids[slot] !== "") sessionCounters[slot] = 1;
  }
  const sessionsFresh = sessions !== null && isFresh(input, "sessions", sessions.settledAt);
  return {
    listed: freshSlots(fleet, fleet.listedAt, input.now - input.staleAfterMs.nodes),
    detailed: freshSlots(fleet, fleet.detailedAt, input.now - input.staleAfterMs.details),
    sessions: sessionsFresh ? sessionCounters : new Uint8Array(sessionCounters.length),
    sessionCounters,
  };
}

function freshSlots({ slots, ids }: Fleet, observedAt: Float64Array, since: number): Uint8Array {
  const fresh = new Uint8Array(slots);
  for (let slot = 0; slot < slots; slot++) {
    if (observedAt[slot]! >= since && ids[slot] !== "") fresh[slot] = 1;
  }
  return fresh;
}

/** Marks with 1 the slots that speak of another node than at the last rendering; null: none does. */
export function markRelabelled(before: readonly string[], ids: readonly string[]): Uint8Array | null {
  if (before === ids) return null;
  let marks: Uint8Array | null = null;
  for (let slot = 0; slot < ids.length; slot++) {
    if (before[slot] === ids[slot]) continue;
    marks ??= new Uint8Array(ids.length);
    marks[slot] = 1;
  }
  return marks;
}

/**
 * Marks with 1 the slots from `start` to before `end` of which `proxynet_node_info` says something else than before,
 * counted from `start`; null: of none. Slots that only one of the fleets has are not looked at.
 */
export function markInfoChanged(
  before: Fleet,
  fleet: Fleet,
  labels: readonly NodeLabel[],
  start: number,
  end: number,
): Uint8Array | null {
  let marks: Uint8Array | null = null;
  for (const label of labels) {
    for (let slot = start; slot < Math.min(end, before.slots); slot++) {
      if (nodeLabel(before, label, slot) === nodeLabel(fleet, label, slot)) continue;
      marks ??= new Uint8Array(end - start);
      marks[slot - start] = 1;
    }
  }
  return marks;
}

/** Returns the value of a label of `proxynet_node_info`; "": the service reported none. */
export function nodeLabel(fleet: Fleet, label: NodeLabel, slot: number): string {
  const field = FIELD_OF_LABEL[label];
  if (field === "country" || field === "region") return fleet.locations[fleet.locationIndex[slot]!]?.[field] ?? "";
  return fleet[field][slot]!;
}

const FIELD_OF_LABEL = Object.fromEntries(LISTED_TEXT_NAMES.map((name) => [LISTED_TEXTS[name], name])) as Readonly<
  Record<NodeLabel, ListedText>
>;
