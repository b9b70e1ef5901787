import type { ActionView } from "../../../api/row-views.ts";
import { nodeLink, requestName } from "./activity.ts";
import { byId, filler, h } from "../dom.ts";
import { type Cell, type FleetModel, markOf, search, statusOf, troubled } from "../fleet/fleet.ts";
import { glyph } from "../fleet/status-icon.ts";
import { MARK_WORDS } from "../fleet/grid.ts";
import { orderButton, takesOrders } from "./operator-commands.ts";
import { ago, count, many, words } from "../format.ts";

const fillTrouble = filler(byId("trouble"));
const fillTroubleCount = filler(byId("trouble-count"));
const fillApprovals = filler(byId("approvals"));
const fillFound = filler(byId("found"));

/** More than these would bury the page; the grid shows all, and the search finds each. */
const TROUBLE_MAX = 60;
const FOUND_MAX = 12;

/** The nodes that a person should know of, as links. */
export function showTrouble(fleet: FleetModel): void {
  const all = troubled(fleet);
  const shown = all.slice(0, TROUBLE_MAX);
  const rows = shown.map((cell) => [cell.id, statusOf(fleet, cell), markOf(fleet, cell)] as const);
  fillTroubleCount([all.length, shown.length], () => [
    all.length > shown.length ? `${count(shown.length)} of ${many(all.length, "node")}` : many(all.length, "node"),
  ]);
  fillTrouble(rows, () =>
    rows.length === 0
      ? [h("li", { class: "empty muted" }, "Every node is online or in maintenance.")]
      : shown.map((cell) => troubleElement(fleet, cell)),
  );
}

function troubleElement(fleet: FleetModel, cell: Cell): HTMLElement {
  const [status, mark] = [statusOf(fleet, cell), MARK_WORDS[markOf(fleet, cell)] ?? ""];
  return h(
    "li",
    {},
    glyph(status),
    nodeLink(cell.id, cell.name, "trouble"),
    h("span", { class: "muted" }, `${words(status)}, ${cell.region}`),
    mark === "" ? null : h("span", { class: `mark mark-${markOf(fleet, cell)}` }, mark),
  );
}

/** What waits for a person, each with both answers. */
export function showApprovals(actions: readonly ActionView[], fleet: FleetModel | null, now: number): void {
  byId("approvals-card").hidden = actions.length === 0;
  byId("approvals-count").textContent = many(actions.length, "action");
  fillApprovals([actions, takesOrders(), Math.floor(now / 10_000)], () =>
    actions.map((action) => approvalElement(action, fleet?.byId.get(action.node)?.name ?? action.node, now)),
  );
}

function approvalElement(action: ActionView, name: string, now: number): HTMLElement {
  const what = requestName(action.request);
  const path = `actions/${encodeURIComponent(action.id)}`;
  const approve = {
    path: `${path}/approve`,
    name: "Approve",
    meaning: `${what} of ${name} (${action.id}), is sent once nothing else holds it.`,
    hasReason: false,
  };
  const reject = {
    path: `${path}/reject`,
    name: "Reject",
    meaning: `${what} of ${name} (${action.id}) is not executed, and is not requested again in this episode.`,
    hasReason: true,
  };
  const evidence = Object.entries(action.evidence.fields).map(([field, value]) => `${field} ${String(value)}`);
  return h(
    "li",
    {},
    h(
      "p",
      {},
      h("b", {}, what),
      " of ",
      nodeLink(action.node, name, `approval ${action.id}`),
      h("span", { class: "muted" }, ` ${action.policy}, ${ago(action.created_at, now)}`),
    ),
    evidence.length === 0 ? null : h("p", { class: "muted detail" }, evidence.join(", ")),
    h(
      "div",
      { class: "buttons" },
      orderButton(approve, `approve ${action.id}`, "primary"),
      orderButton(reject, `reject ${action.id}`),
    ),
  );
}

/** The nodes that a search found, as links. */
export function showFound(fleet: FleetModel | null, text: string): readonly Cell[] {
  const found = fleet === null ? [] : search(fleet, text);
  byId("found").hidden = text.trim() === "";
  fillFound([text, found.slice(0, FOUND_MAX).map(({ id }) => id), found.length], () => [
    ...found
      .slice(0, FOUND_MAX)
      .map((cell) =>
        h(
          "li",
          {},
          glyph(statusOf(fleet!, cell)),
          nodeLink(cell.id, cell.name, "found"),
          h("span", { class: "muted" }, cell.region),
        ),
      ),
    found.length > FOUND_MAX
      ? h("li", { class: "muted" }, `and ${count(found.length - FOUND_MAX)} more, highlighted in the grid`)
      : null,
    found.length === 0 ? h("li", { class: "muted" }, "No matching node.") : null,
  ]);
  return found;
}
