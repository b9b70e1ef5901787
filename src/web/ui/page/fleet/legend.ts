import { byId, fill, filler, h } from "../dom.ts";
import { countStatuses, type FleetModel } from "./fleet.ts";
import { glyph } from "./status-icon.ts";
import { count, words } from "../format.ts";

const fillLegend = filler(byId("legend"));
const RING_WORDS = [
  ["ring-episode", "being remediated"],
  ["ring-awaiting", "waits for approval"],
  ["ring-firing", "fires, not acted on"],
  ["ring-shadow", "dry run"],
  ["ring-held", "held"],
] as const;

/** The statuses with their shapes and numbers; each is a button that shows its nodes alone. */
export function showLegend(fleet: FleetModel, chosen: string | null, onChoose: (status: string | null) => void): void {
  const counts = countStatuses(fleet);
  fillLegend([counts, chosen], () =>
    fleet.statuses.map((status, index) =>
      h(
        "button",
        {
          type: "button",
          "data-k": `legend ${status}`,
          "aria-pressed": String(status === chosen),
          class: counts[index] === 0 ? "none" : null,
          onclick: () => onChoose(status === chosen ? null : status),
        },
        glyph(status),
        h("span", {}, words(status)),
        h("b", {}, count(counts[index])),
      ),
    ),
  );
}

/** What the rings around cells mean. */
export function showRings(): void {
  fill(
    byId("marks"),
    RING_WORDS.map(([ring, meaning]) =>
      h("span", { class: "ring-key" }, h("i", { class: `ring is-${ring}`, "aria-hidden": "true" }), meaning),
    ),
  );
}
