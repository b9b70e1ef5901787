import { byId, type Child, createButton, createElement, fill, keepChildren } from "../dom.ts";
import { type Cell, choosePairs, countNodes, type FleetModel, pairOf } from "../fleet/fleet.ts";
import { compileFilter, type NodeFilter } from "../fleet/node-filter.ts";
import { type NodeOrder, sortNodes } from "../fleet/node-order.ts";
import { needsAttention } from "../fleet/remediation-states.ts";
import { countNoun, formatCount } from "../format.ts";
import { NodeRows, showHeader } from "./node-rows.ts";

/** Settings of the list (see {@link ViewState}). */
interface AttentionView extends NodeFilter {
  readonly attentionOrder: NodeOrder | null;
  readonly page: number;
}

type Navigate = (change: Partial<Pick<AttentionView, "attentionOrder" | "page">>) => void;

const NODES_PER_PAGE = 15;

const rows = new NodeRows();

/** Lists the nodes that need attention and pass the filter, page by page. */
export function showNodesNeedingAttention(fleet: FleetModel, view: AttentionView, navigate: Navigate): void {
  const all = countNodes(fleet, needsAttention);
  const nodes = matchingNodes(fleet, view);
  const pages = Math.max(1, Math.ceil(nodes.length / NODES_PER_PAGE));
  const page = Math.min(view.page, pages);
  const shown = nodes.slice((page - 1) * NODES_PER_PAGE, page * NODES_PER_PAGE);
  const matching = all === nodes.length ? "" : `${formatCount(nodes.length)} of `;
  byId("attention-count").textContent = `${matching}${countNoun(all, "node")}`;
  showHeader(byId("attention-head"), view.attentionOrder, (attentionOrder) => navigate({ attentionOrder, page: 1 }));
  byId("attention-table").hidden = shown.length === 0;
  byId("attention-none").hidden = shown.length > 0;
  byId("attention-none").textContent =
    all === 0 ? "Every node is online or in maintenance." : "No node that needs attention matches the filter.";
  keepChildren(byId("attention"), rows.rowsOf(fleet, shown));
  fill(byId("attention-pager"), [page, pages], () => (pages === 1 ? [] : pagerElements(page, pages, navigate)));
}

function matchingNodes(fleet: FleetModel, view: AttentionView): readonly Cell[] {
  const passes = compileFilter(fleet, view);
  const pairs = choosePairs(fleet, needsAttention);
  const nodes = fleet.cells.filter((cell) => pairs[pairOf(fleet, cell.slot)]! && (passes === null || passes(cell)));
  return sortNodes(fleet, nodes, view.attentionOrder ?? { column: "urgency", isDescending: false });
}

function pagerElements(page: number, pages: number, navigate: Navigate): readonly Child[] {
  const button = (name: string, to: number) =>
    createButton(name, name, () => navigate({ page: to }), { disabled: to < 1 || to > pages || to === page });
  return [
    button("First", 1),
    button("Previous", page - 1),
    createElement("span.muted", `Page ${formatCount(page)} of ${formatCount(pages)}`),
    button("Next", page + 1),
    button("Last", pages),
  ];
}
