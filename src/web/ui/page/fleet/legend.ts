import { byId, createElement, fillEach } from "../dom.ts";
import { formatCount, humanize } from "../format.ts";
import { countNodes, type FleetModel } from "./fleet.ts";
import type { NodeFilter } from "./node-filter.ts";
import { REMEDIATION_STATES } from "./remediation-states.ts";
import { glyphElement, ringElement } from "./status-icon.ts";

/**
 * Shows the statuses and the remediation states with their icons and counts, which are a dash unless the fleet `isKnown`.
 * Each is a button that filters.
 */
export function showLegend(
  fleet: FleetModel,
  isKnown: boolean,
  { status, remediation }: NodeFilter,
  onChoose: (change: Partial<NodeFilter>) => void,
): void {
  const statuses = fleet.statuses.map((name) => ({
    name,
    label: humanize(name),
    count: isKnown ? countNodes(fleet, (value) => value === name) : null,
  }));
  const states = REMEDIATION_STATES.map(({ name, label, meaning, marks }) => ({
    name,
    label,
    title: meaning,
    count: isKnown ? countNodes(fleet, (_, mark) => marks.includes(mark)) : null,
  }));
  showItems(byId("legend"), statuses, status, glyphElement, (chosen) => onChoose({ status: chosen }));
  showItems(byId("marks"), states, remediation, ringElement, (chosen) => onChoose({ remediation: chosen }));
}

interface LegendItem {
  readonly name: string;
  readonly label: string;
  /** Null if unknown. */
  readonly count: number | null;
  readonly title?: string;
}

/** Shows items as buttons. Pressing the chosen one again chooses none. */
function showItems(
  parent: HTMLElement,
  items: readonly LegendItem[],
  chosen: string | null,
  iconOf: (name: string) => Element,
  onChoose: (name: string | null) => void,
): void {
  const shown = items.map((item) => ({ ...item, isChosen: item.name === chosen }));
  fillEach(parent, shown, ({ name, label, count, title, isChosen }) =>
    createElement(
      `button${count ? "" : ".none"}`,
      {
        type: "button",
        title,
        onclick: () => onChoose(isChosen ? null : name),
        "data-k": name,
        "aria-pressed": String(isChosen),
      },
      iconOf(name),
      createElement("span", label),
      createElement("b", formatCount(count)),
    ),
  );
}
