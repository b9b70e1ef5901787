import type { Steps } from "../../base/steps.ts";
import { LISTED_TEXT_NAMES, LISTED_TEXTS, type ListedText, type NodeLabel } from "../../model/node.ts";
import type { Fleet } from "../../model/snapshot.ts";
import { idsOf, type NodeFamily, type RenderInput } from "../families/family.ts";
import { NODE_INFO } from "../families/node-families.ts";
import { escapeLabelValue } from "../text-format.ts";
import { LabelPages, type SlotComparison } from "./label-pages.ts";

/** The label texts of all nodes: the ids, and for `proxynet_node_info` the id with the other labels. */
export class NodeLabels {
  readonly #fleet = new LabelPages();
  readonly #sessions = new LabelPages();
  readonly #info = new LabelPages();
  #previous: RenderInput | null = null;

  /** Returns the labels of a family's nodes. */
  of(family: NodeFamily): LabelPages {
    if (family === NODE_INFO) return this.#info;
    return family.source === "sessions" ? this.#sessions : this.#fleet;
  }

  /** Updates the texts to those of a snapshot. Yields after every few thousand nodes. */
  *update(input: RenderInput): Steps<void> {
    const previous = this.#previous;
    this.#previous = input;
    for (const source of ["nodes", "sessions"] as const) {
      const ids = idsOf(source, input);
      const textAt = (slot: number) => escapeLabelValue(ids[slot]!);
      const pages = source === "sessions" ? this.#sessions : this.#fleet;
      yield* pages.update(ids.length, sameIds(previous, input, source), textAt);
    }
    yield* this.#updateInfo(previous, input);
  }

  *#updateInfo(previous: RenderInput | null, input: RenderInput): Steps<void> {
    const { fleet } = input.snapshot;
    const { nodeLabels, deny } = input.options;
    const pair = (label: NodeLabel, slot: number) => `",${label}="${escapeLabelValue(nodeLabel(fleet, label, slot))}`;
    const textAt = (slot: number) =>
      escapeLabelValue(fleet.ids[slot]!) + nodeLabels.map((label) => pair(label, slot)).join("");
    yield* this.#info.update(deny.has(NODE_INFO.name) ? 0 : fleet.slots, sameInfo(previous, input), textAt);
  }
}

/** Compares the ids of the slots in two snapshots. */
function sameIds(previous: RenderInput | null, input: RenderInput, source: "nodes" | "sessions"): SlotComparison {
  const [before, now] = [previous === null ? [] : idsOf(source, previous), idsOf(source, input)];
  return before === now ? null : (slot) => before[slot] === now[slot];
}

/** Compares the labels of `proxynet_node_info` of the slots in two snapshots. */
function sameInfo(previous: RenderInput | null, input: RenderInput): SlotComparison {
  const { nodeLabels } = input.options;
  if (previous?.options.nodeLabels.join() !== nodeLabels.join()) return () => false;
  const [before, now] = [previous.snapshot.fleet, input.snapshot.fleet];
  const changed = changedLabels(before, now, nodeLabels);
  const isSameId = sameIds(previous, input, "nodes");
  if (changed.length === 0) return isSameId;
  const hasSameLabels = (slot: number) =>
    changed.every((label) => nodeLabel(before, label, slot) === nodeLabel(now, label, slot));
  return (slot) => (isSameId === null || isSameId(slot)) && hasSameLabels(slot);
}

/**
 * Returns the labels of `proxynet_node_info` whose values may differ, because the fleets do not share their columns.
 */
const changedLabels = (previous: Fleet, fleet: Fleet, labels: readonly NodeLabel[]): readonly NodeLabel[] =>
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
