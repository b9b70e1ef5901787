import type { ActionView, DecisionView } from "../../../api/row-views.ts";
import { getJson, type RowList } from "../api.ts";
import { byId, createElement, keepChildren, replaceChildren } from "../dom.ts";
import { ACTIVITY_KINDS, type ViewState } from "../view-state.ts";
import { incidentElement, lineElement } from "./activity-elements.ts";
import { type ActivityLine, actionLine, decisionLine } from "./activity-lines.ts";
import { groupHolds, type Incident } from "./incidents.ts";

/** Rows that are read at once. */
const ROWS_PER_READ = 200;
/** Lines that are shown at first, and that each press of the button adds. */
const LINES_PER_PAGE = 50;
/** Lines that are kept while new ones arrive, beyond those that the user asked for. */
const LINES_KEPT = 1_000;

/** Rows of a kind that were read. */
interface RowStream {
  /** Time of the oldest row that was read; null: none. */
  oldest: string | null;
  /** Whether there are no older rows. */
  isComplete: boolean;
}
type RowKind = ActivityLine["kind"];

/** The list of decisions and actions, newest first. */
export class ActivityList {
  readonly #list = byId("activity");
  readonly #older = byId<HTMLButtonElement>("activity-older");
  readonly #nameOf: (node: string) => string;
  readonly #lines = new Map<string, ActivityLine>();
  readonly #streams: Record<RowKind, RowStream> = {
    actions: { oldest: null, isComplete: false },
    decisions: { oldest: null, isComplete: false },
  };
  /** Keys of the open lines. */
  readonly #open = new Set<string>();
  /** Elements by the key of their line, with what they show. */
  #elements = new Map<string, { readonly shows: string; readonly element: HTMLElement }>();
  #kind: ViewState["activity"] = "all";
  #shownMax = LINES_PER_PAGE;
  #keptMax = LINES_KEPT;
  #frame = 0;

  /** `nameOf`: returns a node's name by its id. */
  constructor(nameOf: (node: string) => string) {
    this.#nameOf = nameOf;
    this.#older.addEventListener("click", () => void this.#showOlder());
  }

  /** Reads the latest rows again. Older ones that were read are dropped. */
  async load(): Promise<void> {
    const [decisions, actions] = await Promise.all([readRows("decisions"), readRows("actions")]);
    if (decisions === null || actions === null) return;
    this.#lines.clear();
    for (const stream of Object.values(this.#streams)) Object.assign(stream, { oldest: null, isComplete: false });
    this.#add("decisions", decisions);
    this.#add("actions", actions);
    this.repaint();
  }

  decision(row: DecisionView): void {
    this.#put(decisionLine(row));
  }

  action(row: ActionView): void {
    this.#put(actionLine(row));
  }

  /** Shows rows of one kind, or all; `onChoose` is called when the user chooses. */
  show(kind: ViewState["activity"], onChoose: (kind: ViewState["activity"]) => void): void {
    this.#kind = kind;
    const buttons = ACTIVITY_KINDS.map((each) =>
      createElement(
        "button",
        {
          ...{ type: "button", "data-k": `activity ${each}`, "aria-pressed": String(each === kind) },
          onclick: () => onChoose(each),
        },
        each,
      ),
    );
    replaceChildren(byId("activity-filter"), buttons);
    this.repaint();
  }

  /** Paints the list again soon: lines or names of nodes changed. */
  repaint(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #put(line: ActivityLine): void {
    this.#lines.set(line.key, line);
    this.repaint();
  }

  #add(kind: RowKind, lines: readonly ActivityLine[]): void {
    const stream = this.#streams[kind];
    const isNew = lines.some(({ key }) => !this.#lines.has(key));
    for (const line of lines) this.#lines.set(line.key, line);
    stream.isComplete = lines.length < ROWS_PER_READ;
    const oldest = lines.at(-1)?.storedAt ?? stream.oldest;
    // More rows of one instant than are read at once: the rest of them is left out.
    stream.oldest = isNew || oldest === null ? oldest : new Date(Date.parse(oldest) - 1).toISOString();
  }

  /** Streams of the chosen kind that have older rows. */
  #incompleteStreams(): readonly (readonly [RowKind, RowStream])[] {
    const kinds: readonly RowKind[] = this.#kind === "all" ? ["actions", "decisions"] : [this.#kind];
    return kinds.map((kind) => [kind, this.#streams[kind]] as const).filter(([, { isComplete }]) => !isComplete);
  }

  /** The time from which on all rows of the chosen kind are known; empty: all rows are. */
  #knownSince(): string {
    return this.#incompleteStreams().reduce((since, [, { oldest }]) => (oldest! > since ? oldest! : since), "");
  }

  async #showOlder(): Promise<void> {
    this.#older.disabled = true;
    this.#shownMax += LINES_PER_PAGE;
    while (this.#items().length < this.#shownMax && this.#incompleteStreams().length > 0) {
      const since = this.#knownSince();
      const due = this.#incompleteStreams().filter(([, { oldest }]) => oldest === since);
      const read = await Promise.all(due.map(async ([kind]) => [kind, await readRows(kind, since)] as const));
      for (const [kind, lines] of read) {
        if (lines !== null) this.#add(kind, lines);
        this.#keptMax += lines?.length ?? 0;
      }
      if (read.some(([, lines]) => lines === null)) break;
    }
    this.#older.disabled = false;
    this.repaint();
  }

  #items(): readonly (ActivityLine | Incident)[] {
    const since = this.#knownSince();
    const shown = [...this.#lines.values()].filter(
      ({ kind, storedAt }) => (this.#kind === "all" || this.#kind === kind) && storedAt >= since,
    );
    return groupHolds(shown.sort((one, other) => (one.at < other.at ? 1 : -1)));
  }

  #paint(): void {
    this.#frame = 0;
    this.#dropOldest();
    const items = this.#items();
    const shown = items.slice(0, this.#shownMax);
    const elements = new Map(shown.map((item) => [item.key, this.#elementOf(item)] as const));
    this.#elements = elements;
    const none = createElement("li", { class: "empty muted" }, "No activity yet. Decisions and actions appear here.");
    keepChildren(this.#list, shown.length === 0 ? [none] : [...elements.values()].map(({ element }) => element));
    this.#older.hidden = shown.length === items.length && this.#incompleteStreams().length === 0;
  }

  #elementOf(item: ActivityLine | Incident) {
    const isOpen = this.#open.has(item.key);
    const names = "lines" in item ? item.lines.map(({ node }) => this.#nameOf(node)) : this.#nameOf(item.node);
    const shows = JSON.stringify([item, isOpen, names]);
    const known = this.#elements.get(item.key);
    if (known?.shows === shows) return known;
    const onToggle = () => {
      if (!this.#open.delete(item.key)) this.#open.add(item.key);
      this.repaint();
    };
    const view = { isOpen, nameOf: this.#nameOf, onToggle };
    return { shows, element: "lines" in item ? incidentElement(item, view) : lineElement(item, view) };
  }

  /** Drops the oldest lines while there are too many. They can be read again. */
  #dropOldest(): void {
    if (this.#lines.size <= this.#keptMax) return;
    const newestFirst = [...this.#lines.values()].sort((one, other) => (one.storedAt < other.storedAt ? 1 : -1));
    const oldest = newestFirst[this.#keptMax - 1]!.storedAt;
    for (const { key } of newestFirst.slice(this.#keptMax)) this.#lines.delete(key);
    for (const stream of Object.values(this.#streams)) {
      if (stream.oldest === null || stream.oldest < oldest) Object.assign(stream, { oldest, isComplete: false });
    }
  }
}

/** Reads the latest rows of a kind, up to a time; null: they can't be read now. */
async function readRows(kind: RowKind, until: string | null = null): Promise<readonly ActivityLine[] | null> {
  const path = `${kind}?limit=${ROWS_PER_READ}${until === null ? "" : `&until=${until}`}`;
  if (kind === "actions") {
    const answer = await getJson<RowList<ActionView>>(path);
    return answer.ok ? answer.value.data.map(actionLine) : null;
  }
  const answer = await getJson<RowList<DecisionView>>(path);
  return answer.ok ? answer.value.data.map(decisionLine) : null;
}
