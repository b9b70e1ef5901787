import { byId, createElement, replaceChildren } from "../dom.ts";
import { formatCount, humanize } from "../format.ts";
import { type Cell, type FleetModel, markOf, needsAttention, statusOf } from "./fleet.ts";
import { cellAt, cellCorner, computeLayout, type Layout, marginOf, type Step, stepFrom } from "./grid-layout.ts";
import { createPainter } from "./grid-painter.ts";

/** The fleet as a grid of cells. */
export interface Grid {
  /** Shows another fleet. */
  show(fleet: FleetModel): void;
  /** Some nodes changed their status or mark. */
  touch(slots: readonly number[]): void;
  /** Shows some nodes and dims the others; null: shows all. */
  highlight(shows: ((cell: Cell) => boolean) | null): void;
  /** Rings the node that is explained; null: none. */
  select(id: string | null): void;
  /** Colours changed. */
  repaint(): void;
  focus(): void;
}

/** Height of the grid if cells can be small enough, so that what is below stays visible. */
const HEIGHT_PREFERRED = 480;
/** On narrower screens the names of regions are above their nodes. */
const SIDE_LABELS_MIN = 620;
const LABEL_WIDTH = 176;
const LABEL_HEIGHT = 18;
const BLOCK_HEIGHT_MIN = 16;
/** With more regions, their names are not shown. */
const LABELS_MAX = 200;
const GAP = 8;

const keySteps: Readonly<Record<string, Step>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
  Home: "home",
  End: "end",
  PageDown: "next_block",
  PageUp: "previous_block",
};

/** Creates the grid. `onOpen`: called when a node is opened. */
export function createGrid(onOpen: (id: string) => void): Grid {
  const [box, cells, labels] = [byId("grid"), byId("cells"), byId("labels")];
  const [cursor, tip] = [byId("cursor"), byId("tip")];
  const painter = createPainter(byId<HTMLCanvasElement>("canvas"));
  const announcer = createAnnouncer(byId("options"), cells);
  let fleet: FleetModel | null = null;
  let layout: Layout | null = null;
  let indexes: ReadonlyMap<number, number> = new Map();
  let at = 0;
  let hovered: number | null = null;

  function place(): void {
    if (fleet === null || box.clientWidth === 0) return;
    const isSide = box.clientWidth >= SIDE_LABELS_MIN;
    layout = computeLayout(
      fleet.groups.map((group) => group.cells.length),
      {
        width: box.clientWidth - (isSide ? LABEL_WIDTH : 0),
        height: HEIGHT_PREFERRED + (isSide ? 0 : fleet.groups.length * (LABEL_HEIGHT + GAP)),
        blockHeight: isSide ? BLOCK_HEIGHT_MIN : 0,
        gap: GAP,
        head: isSide ? 0 : LABEL_HEIGHT,
      },
    );
    cells.style.marginLeft = isSide ? `${LABEL_WIDTH}px` : "0";
    cells.style.height = `${layout.height}px`;
    at = Math.min(at, Math.max(0, fleet.cells.length - 1));
    painter.place(fleet, layout);
    nameRegions(isSide);
    showCursor();
  }

  function nameRegions(isSide: boolean): void {
    const { groups, status, statuses } = fleet!;
    const online = statuses.indexOf("online");
    replaceChildren(
      labels,
      groups.slice(0, LABELS_MAX).map(({ region, cells: members }, index) => {
        const up = members.filter(({ slot }) => status[slot] === online).length;
        const text = `${formatCount(up)}/${formatCount(members.length)}`;
        const label = createElement(
          "div",
          { class: "region" },
          createElement("b", {}, region),
          createElement("span", { class: "muted" }, text),
        );
        label.style.top = `${layout!.blocks[index]!.top - (isSide ? 0 : LABEL_HEIGHT)}px`;
        return label;
      }),
    );
    labels.classList.toggle("beside", isSide);
  }

  function showCursor(): void {
    const index = hovered ?? (document.activeElement === cells ? at : null);
    const cell = index === null ? undefined : fleet?.cells[index];
    cursor.hidden = cell === undefined;
    tip.hidden = cell === undefined;
    if (index === null || cell === undefined || layout === null) return;
    const { x, y } = cellCorner(layout, index);
    for (const side of ["width", "height"] as const) cursor.style[side] = `${layout.size + 4}px`;
    const margin = marginOf(layout.pitch, layout.size);
    cursor.style.transform = `translate(${x + margin - 2}px, ${y + margin - 2}px)`;
    replaceChildren(tip, [createElement("b", {}, cell.name), ` ${describe(fleet!, cell)}`]);
    const left = Math.min(x + cells.offsetLeft, box.clientWidth - tip.offsetWidth);
    const under = y + layout.size + 8;
    tip.style.transform = `translate(${Math.max(0, left)}px, ${under}px)`;
  }

  function goTo(index: number): void {
    at = index;
    hovered = null;
    showCursor();
    const cell = fleet?.cells[index];
    if (cell !== undefined) announcer.say(`${cell.name}, ${describe(fleet!, cell)}`, index, fleet!.cells.length);
    cursor.scrollIntoView({ block: "nearest" });
  }

  function nextNodeNeedingAttention(from: number): number {
    const { length } = fleet!.cells;
    for (let step = 1; step <= length; step++) {
      const index = (from + step) % length;
      if (needsAttention(fleet!, fleet!.cells[index]!)) return index;
    }
    return from;
  }

  function press(event: KeyboardEvent): void {
    if (fleet === null || layout === null || fleet.cells.length === 0) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = keySteps[event.key];
    if (step !== undefined) goTo(stepFrom(layout, at, step));
    else if (event.key === "t" || event.key === "T") goTo(nextNodeNeedingAttention(at));
    else if (event.key === "Enter" || event.key === " ") onOpen(fleet.cells[at]!.id);
    else return;
    event.preventDefault();
  }

  function pointAt(event: PointerEvent | MouseEvent): number | null {
    if (layout === null) return null;
    const { left, top } = cells.getBoundingClientRect();
    return cellAt(layout, event.clientX - left, event.clientY - top);
  }

  cells.addEventListener("keydown", press);
  cells.addEventListener("focus", () => goTo(at));
  cells.addEventListener("blur", showCursor);
  cells.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    hovered = pointAt(event);
    showCursor();
  });
  cells.addEventListener("pointerleave", () => {
    hovered = null;
    showCursor();
  });
  cells.addEventListener("click", (event) => {
    const index = pointAt(event);
    if (index === null || fleet === null) return;
    at = index;
    onOpen(fleet.cells[index]!.id);
  });
  let width = 0;
  new ResizeObserver(() => {
    // The layout determines the height.
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    place();
  }).observe(box);

  return {
    show(next) {
      const before = fleet?.cells[at]?.id;
      fleet = next;
      indexes = new Map(next.cells.map(({ slot }, index) => [slot, index]));
      at = indexes.get(next.byId.get(before ?? "")?.slot ?? -1) ?? 0;
      place();
    },
    touch(slots) {
      if (layout === null) return;
      painter.touch(slots.flatMap((slot) => indexes.get(slot) ?? []));
      nameRegions(labels.classList.contains("beside"));
      showCursor();
    },
    highlight: painter.highlight,
    select(id) {
      painter.select(id);
      const index = indexes.get(fleet?.byId.get(id ?? "")?.slot ?? -1);
      if (index !== undefined) at = index;
    },
    repaint: painter.repaint,
    focus: () => cells.focus({ preventScroll: true }),
  };
}

/** Returns a description of a node. */
export function describe(fleet: FleetModel, cell: Cell): string {
  const mark = markOf(fleet, cell);
  const doing = MARK_WORDS[mark] ?? "";
  return `${humanize(statusOf(fleet, cell))}, ${cell.region}${cell.country === "" ? "" : ` ${cell.country}`}${doing === "" ? "" : `, ${doing}`}`;
}

/** Description of each mark. */
export const MARK_WORDS: Readonly<Record<string, string>> = {
  pending: "pending",
  firing: "fires, not acted on",
  shadow: "dry run",
  episode: "in treatment",
  acting: "action under way",
  held: "held",
  awaiting: "waits for approval",
};

/**
 * Announces the node under the cursor. Screen readers announce an option that becomes active, not one whose text
 * changes, so two options take turns.
 */
function createAnnouncer(parent: HTMLElement, box: HTMLElement) {
  const options = ["a", "b"].map((id) =>
    createElement("div", { id: `option-${id}`, role: "option", "aria-selected": "false" }, "no node yet"),
  );
  parent.append(...options);
  let turn = 0;
  return {
    say(text: string, index: number, total: number): void {
      turn = 1 - turn;
      const [now, before] = [options[turn]!, options[1 - turn]!];
      now.textContent = text;
      now.setAttribute("aria-selected", "true");
      now.setAttribute("aria-posinset", String(index + 1));
      now.setAttribute("aria-setsize", String(total));
      before.setAttribute("aria-selected", "false");
      box.setAttribute("aria-activedescendant", now.id);
    },
  };
}
