import { byId, createElement, replaceChildren } from "../dom.ts";

/** A command of the palette. */
export interface PaletteEntry {
  readonly name: string;
  /** Its effect or shortcut. */
  readonly note: string;
  readonly isDisabled?: boolean;
  run(): void;
}

/** Maximum number of listed entries. */
const ENTRIES_SHOWN_MAX = 12;

/**
 * Opens the command palette, which lists the commands that match a text. Arrow keys and Enter choose one. `entries`
 * returns the commands for a text.
 */
export function openPalette(entries: (text: string) => readonly PaletteEntry[]): void {
  const [dialog, list, input] = [
    byId<HTMLDialogElement>("palette"),
    byId("palette-list"),
    byId<HTMLInputElement>("palette-input"),
  ];
  if (dialog.open || byId<HTMLDialogElement>("dialog").open) return;
  let shown: readonly PaletteEntry[] = [];
  let chosen = 0;
  const run = (entry: PaletteEntry | undefined) => {
    if (entry === undefined || entry.isDisabled === true) return;
    dialog.close();
    entry.run();
  };
  const paint = () => {
    input.setAttribute("aria-activedescendant", shown.length === 0 ? "" : `palette-${chosen}`);
    const items = shown.map((entry, index) =>
      createElement(
        "div",
        {
          ...{ id: `palette-${index}`, role: "option", "aria-selected": String(index === chosen) },
          ...{ "aria-disabled": entry.isDisabled === true ? "true" : null, onclick: () => run(entry) },
        },
        createElement("span", entry.name),
        createElement("span.muted", entry.note),
      ),
    );
    replaceChildren(list, items.length === 0 ? [createElement("div.muted", "Nothing matches.")] : items);
  };
  const search = () => {
    shown = entries(input.value.trim()).slice(0, ENTRIES_SHOWN_MAX);
    chosen = 0;
    paint();
  };
  input.value = "";
  input.oninput = search;
  input.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      chosen = (chosen + step + shown.length) % Math.max(1, shown.length);
      paint();
    } else if (event.key === "Enter") run(shown[chosen]);
    else return;
    event.preventDefault();
  };
  search();
  dialog.showModal();
}
