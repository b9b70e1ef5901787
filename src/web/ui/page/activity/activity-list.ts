import { byId, createElement, keepChildren, showChoice } from "../dom.ts";
import { ACTIVITY_KINDS, type ViewState } from "../view-state.ts";
import { incidentElement, lineElement } from "./activity-elements.ts";
import type { ActivityLine } from "./activity-lines.ts";
import { ActivityRows, readRows } from "./activity-rows.ts";
import { groupIncidents, type Incident, isOpenItem, lineKeys } from "./incidents.ts";

/** Number of lines that are shown initially, and that each press of the button adds. */
const LINES_PER_PAGE = 50;

const KIND_LABELS: Readonly<Record<string, string>> = { orders: "commands" };

/** The list of decisions, actions and operator commands, newest first. */
export class ActivityList {
  readonly #list = byId("activity");
  readonly #older = byId<HTMLButtonElement>("activity-older");
  readonly #nameOf: (node: string) => string;
  readonly #rows = new ActivityRows(readRows);
  /** Keys of the open lines. An incident is open if one of its lines is. */
  readonly #open = new Set<string>();
  /** Elements by the key of their line, with their displayed content as JSON. */
  #elements = new Map<string, { readonly shows: string; readonly element: HTMLElement }>();
  /** The day on which the list was painted last. */
  #day = "";
  #kind: ViewState["activity"] = "all";
  #shownMax = LINES_PER_PAGE;
  #isReadingOlder = false;
  #frame = 0;

  /** `nameOf` returns a node's name by its id. */
  constructor(nameOf: (node: string) => string) {
    this.#nameOf = nameOf;
    this.#older.addEventListener("click", () => void this.#showOlder());
  }

  /** Reads the latest rows. Returns false if they can't be read now. */
  async load(): Promise<boolean> {
    const isRead = await this.#rows.load();
    this.repaint();
    return isRead;
  }

  /** Adds a line, or replaces an earlier one with the same key. */
  put(line: ActivityLine): void {
    this.#rows.put(line);
    this.repaint();
  }

  /** Shows the rows of one kind or all rows. `onChoose` is called when the user chooses. */
  show(kind: ViewState["activity"], onChoose: (kind: ViewState["activity"]) => void): void {
    this.#kind = kind;
    showChoice(byId("activity-filter"), ACTIVITY_KINDS, kind, onChoose, KIND_LABELS);
    this.repaint();
  }

  /** Paints the list again soon, because lines or names of nodes changed. */
  repaint(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  /** Paints the list again on another day, because lines of earlier days show their date. */
  followDay(): void {
    if (this.#day !== today()) this.repaint();
  }

  async #showOlder(): Promise<void> {
    if (this.#isReadingOlder) return;
    this.#isReadingOlder = true;
    this.#shownMax += LINES_PER_PAGE;
    try {
      await this.#rows.loadOlder(this.#kind, () => this.#items().length >= this.#shownMax);
    } finally {
      this.#isReadingOlder = false;
    }
    this.repaint();
  }

  #items(): readonly (ActivityLine | Incident)[] {
    return groupIncidents(this.#rows.lines(this.#kind));
  }

  #paint(): void {
    this.#frame = 0;
    this.#day = today();
    this.#rows.dropOldest();
    const items = this.#items();
    const shown = items.slice(0, this.#shownMax);
    const elements = new Map(shown.map((item) => [item.key, this.#elementOf(item)] as const));
    this.#elements = elements;
    keepChildren(
      this.#list,
      shown.length === 0
        ? [createElement("li.empty.muted", this.#emptyText())]
        : [...elements.values()].map(({ element }) => element),
    );
    this.#older.hidden = shown.length === items.length && !this.#rows.hasOlder(this.#kind);
  }

  #emptyText(): string {
    if (!this.#rows.isKnown(this.#kind)) return "Not read yet.";
    if (this.#kind !== "all") return `No ${KIND_LABELS[this.#kind] ?? this.#kind} yet.`;
    return "No activity yet. Decisions, actions and operator commands appear here.";
  }

  #elementOf(item: ActivityLine | Incident) {
    const isOpen = isOpenItem(item, this.#open);
    const names =
      "lines" in item ? item.lines.map(({ node }) => this.#nameOf(node!)) : item.node && this.#nameOf(item.node);
    const shows = JSON.stringify([item, isOpen, names, this.#day]);
    const known = this.#elements.get(item.key);
    if (known?.shows === shows) return known;
    const onToggle = () => {
      const keys = lineKeys(item);
      if (isOpen) for (const key of keys) this.#open.delete(key);
      else this.#open.add(keys[0]!);
      this.repaint();
    };
    const view = { isOpen, nameOf: this.#nameOf, onToggle };
    return { shows, element: "lines" in item ? incidentElement(item, view) : lineElement(item, view) };
  }
}

const today = (): string => new Date().toDateString();
