import type { NumberColumn } from "../../base/number-column.ts";
import { LISTED_TEXT_NAMES, LISTED_TEXTS, type ListedText, type NodeId, type NodeLabel } from "../../model/node.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { isFresh, type NodeSource, type RenderInput, type Visibility } from "../families/family.ts";
import type { Chunk } from "./chunk.ts";

/** What a rendering shows. */
export interface RenderSource {
  readonly input: RenderInput;
  readonly visibility: Visibility;
}

/** What one rendering knows about its snapshot and the previous one. */
export interface RenderFrame extends RenderSource {
  /** What the previous rendering showed, or null if there was none. */
  readonly previous: RenderSource | null;
  /** Marks with 1 the slots that hold a different node than in the previous rendering, or null if none do. */
  readonly relabeled: Readonly<Record<NodeSource, Uint8Array | null>>;
  /** Whether the sessions by node, and their freshness, are the same as in the previous rendering. */
  readonly sessionsUnchanged: boolean;
}

/** Renders one family, from one snapshot to the next. */
export interface FamilyRenderer {
  /** Updates the lines to the frame. Yields after every chunk. */
  refresh(frame: RenderFrame): Generator<void, void>;
  chunks(): readonly Chunk[];
  /** Returns the number of samples in the chunks. */
  sampleCount(): number;
  /** Releases all chunks. The renderer is not used again. */
  release(): void;
}

/** Creates the frame of a rendering. `previous` is what the one before showed. Yields in between. */
export function* createFrame(input: RenderInput, previous: RenderSource | null): Generator<void, RenderFrame> {
  const relabeled = {
    fleet: markRelabeled(idsOf("fleet", previous), idsOf("fleet", { input })),
    session_nodes: markRelabeled(idsOf("session_nodes", previous), idsOf("session_nodes", { input })),
  };
  yield;
  const sessionsUnchanged =
    previous !== null &&
    previous.input.snapshot.sessions === input.snapshot.sessions &&
    hasFreshSessions(previous.input) === hasFreshSessions(input);
  const visibility = computeVisibility(input);
  yield;
  return { input, visibility, previous, relabeled, sessionsUnchanged };
}

/** Returns the ids of a source by slot; none if there is nothing to show. */
export function idsOf(source: NodeSource, shown: Pick<RenderSource, "input"> | null): readonly NodeId[] {
  if (shown === null) return [];
  const { fleet, sessions } = shown.input.snapshot;
  return source === "fleet" ? fleet.ids : (sessions?.nodes.ids ?? []);
}

/** Returns whether there are sessions, and they are fresh. */
function hasFreshSessions(input: RenderInput): boolean {
  const { sessions } = input.snapshot;
  return sessions !== null && isFresh(input, "sessions", sessions.settledAt);
}

/** Returns which slots are shown. */
export function computeVisibility(input: RenderInput): Visibility {
  const { fleet, sessions } = input.snapshot;
  const sessionCounters = new Uint8Array(sessions?.nodes.slots ?? 0);
  for (let slot = 0; slot < sessionCounters.length; slot++) {
    if (sessions!.nodes.ids[slot] !== "") sessionCounters[slot] = 1;
  }
  return {
    listed: freshSlots(fleet, fleet.listedAt, input.now - input.staleAfterMs.nodes),
    detailed: freshSlots(fleet, fleet.detailedAt, input.now - input.staleAfterMs.details),
    sessions: hasFreshSessions(input) ? sessionCounters : new Uint8Array(sessionCounters.length),
    sessionCounters,
  };
}

function freshSlots({ slots, ids }: Fleet, observedAt: NumberColumn, since: number): Uint8Array {
  const fresh = new Uint8Array(slots);
  for (let slot = 0; slot < slots; slot++) {
    if (observedAt.at(slot) >= since && ids[slot] !== "") fresh[slot] = 1;
  }
  return fresh;
}

/** Marks with 1 the slots that hold a different node than in the previous rendering. Returns null if none do. */
function markRelabeled(previousIds: readonly string[], ids: readonly string[]): Uint8Array | null {
  if (previousIds === ids) return null;
  let marks: Uint8Array | null = null;
  for (let slot = 0; slot < ids.length; slot++) {
    if (previousIds[slot] === ids[slot]) continue;
    marks ??= new Uint8Array(ids.length);
    marks[slot] = 1;
  }
  return marks;
}

/** Returns the labels of `proxynet_node_info` that may differ between the fleets, because they share no column of them. */
export const changedLabels = (previous: Fleet, fleet: Fleet, labels: readonly NodeLabel[]): readonly NodeLabel[] =>
  labels.filter((label) => {
    const field = FIELD_OF_LABEL[label];
    if (field !== "country" && field !== "region") return previous[field] !== fleet[field];
    return previous.locationIndex !== fleet.locationIndex || previous.locations !== fleet.locations;
  });

/** Returns the value of a label of `proxynet_node_info`, which is empty if the service reported none. */
export function nodeLabel(fleet: Fleet, label: NodeLabel, slot: number): string {
  const field = FIELD_OF_LABEL[label];
  if (field === "country" || field === "region") return fleet.locations[fleet.locationIndex[slot]!]?.[field] ?? "";
  return fleet[field][slot]!;
}

const FIELD_OF_LABEL = Object.fromEntries(LISTED_TEXT_NAMES.map((name) => [LISTED_TEXTS[name], name])) as Readonly<
  Record<NodeLabel, ListedText>
>;
