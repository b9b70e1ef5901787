import type { ActionView } from "../../../api/row-views.ts";
import { byId, createElement, createFiller } from "../dom.ts";
import { type Cell, type FleetModel, markOf, nodesNeedingAttention, searchNodes, statusOf } from "../fleet/fleet.ts";
import { MARK_WORDS } from "../fleet/grid.ts";
import { glyphElement } from "../fleet/status-icon.ts";
import { countNoun, formatAge, formatCount, humanize } from "../format.ts";
import { nodeLink, requestLabel } from "./activity.ts";
import { commandButton } from "./operator-commands.ts";

const fillAttention = createFiller(byId("attention"));
const fillAttentionCount = createFiller(byId("attention-count"));
const fillApprovals = createFiller(byId("approvals"));
const fillFound = createFiller(byId("found"));

/** Longest list. The grid shows all nodes, and the search finds each. */
const ATTENTION_LISTED_MAX = 60;
const SEARCH_RESULTS_MAX = 12;

/** Lists the nodes that need attention. */
export function showNodesNeedingAttention(fleet: FleetModel): void {
  const all = nodesNeedingAttention(fleet);
  const shown = all.slice(0, ATTENTION_LISTED_MAX);
  const rows = shown.map((cell) => [cell.id, statusOf(fleet, cell), markOf(fleet, cell)] as const);
  fillAttentionCount([all.length, shown.length], () => [
    all.length > shown.length
      ? `${formatCount(shown.length)} of ${countNoun(all.length, "node")}`
      : countNoun(all.length, "node"),
  ]);
  fillAttention(rows, () =>
    rows.length === 0
      ? [createElement("li", { class: "empty muted" }, "Every node is online or in maintenance.")]
      : shown.map((cell) => attentionElement(fleet, cell)),
  );
}

function attentionElement(fleet: FleetModel, cell: Cell): HTMLElement {
  const [status, mark] = [statusOf(fleet, cell), MARK_WORDS[markOf(fleet, cell)] ?? ""];
  return createElement(
    "li",
    {},
    glyphElement(status),
    nodeLink(cell.id, cell.name, "attention"),
    createElement("span", { class: "muted" }, `${humanize(status)}, ${cell.region}`),
    mark === "" ? null : createElement("span", { class: `mark mark-${markOf(fleet, cell)}` }, mark),
  );
}

/** Lists the actions that wait for approval, with buttons to approve and reject. */
export function showApprovals(actions: readonly ActionView[], fleet: FleetModel | null, now: number): void {
  byId("approvals-card").hidden = actions.length === 0;
  byId("approvals-count").textContent = countNoun(actions.length, "action");
  fillApprovals([actions, Math.floor(now / 10_000)], () =>
    actions.map((action) => approvalElement(action, fleet?.byId.get(action.node)?.name ?? action.node, now)),
  );
}

function approvalElement(action: ActionView, name: string, now: number): HTMLElement {
  const what = requestLabel(action.request);
  const path = `actions/${encodeURIComponent(action.id)}`;
  const approve = {
    path: `${path}/approve`,
    name: "Approve",
    meaning: `${what} of ${name} (${action.id}) is sent as soon as nothing else holds it.`,
    hasReason: false,
  };
  const reject = {
    path: `${path}/reject`,
    name: "Reject",
    meaning: `${what} of ${name} (${action.id}) is not executed, and is not requested again in this episode.`,
    hasReason: true,
  };
  const evidence = Object.entries(action.evidence.fields).map(([field, value]) => `${field} ${String(value)}`);
  return createElement(
    "li",
    {},
    createElement(
      "p",
      {},
      createElement("b", {}, what),
      " of ",
      nodeLink(action.node, name, `approval ${action.id}`),
      createElement("span", { class: "muted" }, ` ${action.policy}, ${formatAge(action.created_at, now)}`),
    ),
    evidence.length === 0 ? null : createElement("p", { class: "muted detail" }, evidence.join(", ")),
    createElement(
      "div",
      { class: "buttons" },
      commandButton(approve, `approve ${action.id}`, "primary"),
      commandButton(reject, `reject ${action.id}`),
    ),
  );
}

/** Lists the nodes that a search found. */
export function showSearchResults(fleet: FleetModel | null, text: string): readonly Cell[] {
  const found = fleet === null ? [] : searchNodes(fleet, text);
  byId("found").hidden = text.trim() === "";
  fillFound([text, found.slice(0, SEARCH_RESULTS_MAX).map(({ id }) => id), found.length], () => [
    ...found
      .slice(0, SEARCH_RESULTS_MAX)
      .map((cell) =>
        createElement(
          "li",
          {},
          glyphElement(statusOf(fleet!, cell)),
          nodeLink(cell.id, cell.name, "found"),
          createElement("span", { class: "muted" }, cell.region),
        ),
      ),
    found.length > SEARCH_RESULTS_MAX
      ? createElement(
          "li",
          { class: "muted" },
          `and ${formatCount(found.length - SEARCH_RESULTS_MAX)} more, highlighted in the grid`,
        )
      : null,
    found.length === 0 ? createElement("li", { class: "muted" }, "No matching node.") : null,
  ]);
  return found;
}
