import { byId, createElement, createFiller } from "../dom.ts";
import { formatCount, humanize } from "../format.ts";
import { countNodes, type FleetModel } from "./fleet.ts";
import type { NodeFilter } from "./node-filter.ts";
import { REMEDIATION_STATES } from "./remediation-states.ts";
import { glyphElement, ringElement } from "./status-icon.ts";

const fillStatuses = createFiller(byId("legend"));
const fillStates = createFiller(byId("marks"));

type Choose = (change: Partial<Pick<NodeFilter, "status" | "remediation">>) => void;

/** Shows the statuses and the states of remediation with their icons and counts. Each is a button that filters. */
export function showLegend(fleet: FleetModel, { status: chosen, remediation }: NodeFilter, onChoose: Choose): void {
  const statuses = fleet.statuses.map((status) => [status, countNodes(fleet, (value) => value === status)] as const);
  fillStatuses([statuses, chosen], () =>
    statuses.map(([status, count]) =>
      legendButton(
        { name: status, label: humanize(status), sign: glyphElement(status), count, isChosen: status === chosen },
        () => onChoose({ status: status === chosen ? null : status }),
      ),
    ),
  );
  const states = REMEDIATION_STATES.map(
    (state) => [state, countNodes(fleet, (_, mark) => state.marks.includes(mark))] as const,
  );
  fillStates([states.map(([, count]) => count), remediation], () =>
    states.map(([{ name, label, meaning }, count]) =>
      legendButton(
        {
          ...{ name, label, count, title: meaning, isChosen: name === remediation },
          sign: ringElement(name),
        },
        () => onChoose({ remediation: name === remediation ? null : name }),
      ),
    ),
  );
}

interface LegendItem {
  readonly name: string;
  readonly label: string;
  readonly sign: Element;
  readonly count: number;
  readonly isChosen: boolean;
  readonly title?: string;
}

const legendButton = ({ name, label, sign, count, isChosen, title }: LegendItem, onclick: () => void): HTMLElement =>
  createElement(
    "button",
    {
      ...{ type: "button", title, onclick, "data-k": `legend ${name}`, "aria-pressed": String(isChosen) },
      class: count === 0 ? "none" : null,
    },
    sign,
    createElement("span", {}, label),
    createElement("b", {}, formatCount(count)),
  );
