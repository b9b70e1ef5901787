import { byId, type Child, createButton, createElement, fill, keepChildren } from "../dom.ts";
import { countNodes, type FleetModel, selectNodes } from "../fleet/fleet.ts";
import { type NodeOrder, sortNodes } from "../fleet/node-order.ts";
import { needsAttention } from "../fleet/remediation-states.ts";
import { countNoun, formatCount } from "../format.ts";
import { NodeRows, noNodesText, showHeader } from "./node-rows.ts";

/** Settings of the list (see {@link ViewState}). */
interface AttentionView {
  readonly attentionOrder: NodeOrder | null;
  readonly page: number;
}

const NODES_PER_PAGE = 15;

const rows = new NodeRows();

/**
 * Shows a page of the list of nodes that need attention. Of these, only nodes with an index in `filtered` are listed.
 * Unless the fleet `isKnown`, the list does not claim that no node needs attention.
 */
export function showNodesNeedingAttention(
  fleet: FleetModel,
  isKnown: boolean,
  filtered: Uint32Array,
  { attentionOrder, page: wantedPage }: AttentionView,
  navigate: (change: Partial<AttentionView>) => void,
): void {
  const all = countNodes(fleet, needsAttention);
  const found = selectNodes(fleet, filtered, needsAttention);
  const nodes = sortNodes(fleet, found, attentionOrder ?? { column: "urgency", isDescending: false });
  const pages = Math.max(1, Math.ceil(nodes.length / NODES_PER_PAGE));
  const page = Math.min(wantedPage, pages);
  const shown = nodes.subarray((page - 1) * NODES_PER_PAGE, page * NODES_PER_PAGE);
  const matching = all === nodes.length ? "" : `${formatCount(nodes.length)} of `;
  byId("attention-count").textContent = isKnown ? `${matching}${countNoun(all, "node")}` : "";
  showHeader(byId("attention-head"), attentionOrder, (order) => navigate({ attentionOrder: order, page: 1 }));
  byId("attention-table").hidden = shown.length === 0;
  byId("attention-none").hidden = shown.length > 0;
  const healthy = fleet.cells.length === 0 ? noNodesText(isKnown) : "Every node is online or in maintenance.";
  byId("attention-none").textContent = all === 0 ? healthy : "No node that needs attention matches the filter.";
  keepChildren(byId("attention"), rows.rowsOf(fleet, shown));
  fill(byId("attention-pager"), [page, pages], () => (pages === 1 ? [] : pagerElements(page, pages, navigate)));
}

function pagerElements(page: number, pages: number, navigate: (change: { page: number }) => void): readonly Child[] {
  const button = (name: string, to: number) => {
    const isDisabled = to < 1 || to > pages || to === page;
    // With `disabled` it would lose the focus.
    const attributes = { "aria-disabled": isDisabled ? "true" : null };
    return createButton(name, name, () => isDisabled || navigate({ page: to }), attributes);
  };
  return [
    button("First", 1),
    button("Previous", page - 1),
    createElement("span.muted", `Page ${formatCount(page)} of ${formatCount(pages)}`),
    button("Next", page + 1),
    button("Last", pages),
  ];
}
