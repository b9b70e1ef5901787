import { byId, createElement, createFiller, replaceChildren } from "../dom.ts";
import { formatCount, humanize } from "../format.ts";
import { countStatuses, type FleetModel } from "./fleet.ts";
import { glyphElement } from "./status-icon.ts";

const fillLegend = createFiller(byId("legend"));
const RING_LABELS = [
  ["ring-episode", "being remediated"],
  ["ring-awaiting", "waits for approval"],
  ["ring-firing", "fires, not acted on"],
  ["ring-shadow", "dry run"],
  ["ring-held", "held"],
] as const;

/** Shows the statuses with shapes and counts; each is a button that filters the grid. */
export function showLegend(fleet: FleetModel, chosen: string | null, onChoose: (status: string | null) => void): void {
  const counts = countStatuses(fleet);
  fillLegend([counts, chosen], () =>
    fleet.statuses.map((status, index) =>
      createElement(
        "button",
        {
          type: "button",
          "data-k": `legend ${status}`,
          "aria-pressed": String(status === chosen),
          class: counts[index] === 0 ? "none" : null,
          onclick: () => onChoose(status === chosen ? null : status),
        },
        glyphElement(status),
        createElement("span", {}, humanize(status)),
        createElement("b", {}, formatCount(counts[index])),
      ),
    ),
  );
}

/** Shows the meaning of the rings around cells. */
export function showRings(): void {
  replaceChildren(
    byId("marks"),
    RING_LABELS.map(([ring, meaning]) =>
      createElement(
        "span",
        { class: "ring-key" },
        createElement("i", { class: `ring is-${ring}`, "aria-hidden": "true" }),
        meaning,
      ),
    ),
  );
}
