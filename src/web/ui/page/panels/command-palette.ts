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
  const dialog = byId<HTMLDialogElement>("palette");
  if (dialog.open || byId<HTMLDialogElement>("dialog").open) return;
  let shown: readonly PaletteEntry[] = [];
  let chosen = 0;
  const input = createElement("input", {
    ...{ type: "text", id: "palette-input", autocomplete: "off", spellcheck: "false", maxlength: 256 },
    ...{ role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Command or node" },
    placeholder: "Command or node…",
  });
  const list = createElement("ul", { id: "palette-list", role: "listbox", "aria-label": "Commands" });

  const run = (entry: PaletteEntry | undefined) => {
    if (entry === undefined || entry.isDisabled === true) return;
    dialog.close();
    entry.run();
  };
  const paint = () => {
    input.setAttribute("aria-activedescendant", shown.length === 0 ? "" : `palette-${chosen}`);
    const items = shown.map((entry, index) =>
      createElement(
        "li",
        {
          ...{ id: `palette-${index}`, role: "option", "aria-selected": String(index === chosen) },
          ...{ "aria-disabled": entry.isDisabled === true ? "true" : null, onclick: () => run(entry) },
        },
        createElement("span", {}, entry.name),
        createElement("span", { class: "muted" }, entry.note),
      ),
    );
    replaceChildren(list, items.length === 0 ? [createElement("li", { class: "muted" }, "Nothing matches.")] : items);
  };
  const search = () => {
    shown = entries(input.value.trim()).slice(0, ENTRIES_SHOWN_MAX);
    chosen = 0;
    paint();
  };
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      chosen = (chosen + step + shown.length) % Math.max(1, shown.length);
      paint();
    } else if (event.key === "Enter") run(shown[chosen]);
    else return;
    event.preventDefault();
  });
  replaceChildren(dialog, [input, list]);
  search();
  dialog.showModal();
  input.focus();
}
