import { byId, createElement, fill, nodeLink } from "../dom.ts";
import { type FleetModel, statusOf } from "../fleet/fleet.ts";
import { searchNodes } from "../fleet/node-filter.ts";
import { glyphElement } from "../fleet/status-icon.ts";
import { formatCount, humanize } from "../format.ts";

/** Maximum number of listed nodes. The grid and the table show all results. */
const RESULTS_LISTED_MAX = 12;

/** Lists the nodes that a search finds, below the field while it has the focus. */
export function showSearchResults(fleet: FleetModel | null, text: string): void {
  const found = byId("search-box").contains(document.activeElement) ? searchNodes(fleet, text) : null;
  const box = byId("found");
  box.hidden = found === null;
  if (fleet === null || found === null) return;
  const listed = found.slice(0, RESULTS_LISTED_MAX).map((cell) => ({ ...cell, status: statusOf(fleet, cell) }));
  fill(box, [listed, found.length], () => [
    ...listed.map(({ id, name, region, country, status }) =>
      createElement(
        "li",
        glyphElement(status),
        createElement("span.unseen", `${humanize(status)} `),
        nodeLink(id, name, "found"),
        createElement("span.muted", `${region} ${country}`),
      ),
    ),
    found.length > listed.length
      ? createElement("li.muted", `and ${formatCount(found.length - listed.length)} more`)
      : null,
    found.length === 0 ? createElement("li.muted", "No matching node.") : null,
  ]);
}
