import type { Status } from "../api.ts";
import { byId, createElement, replaceChildren } from "../dom.ts";
import { type FleetModel, nodeName } from "../fleet/fleet.ts";
import { ATTENTION, searchNodes } from "../fleet/node-filter.ts";
import { REMEDIATION_STATES } from "../fleet/remediation-states.ts";
import { holdCommand, releaseCommand } from "../node/node-panel.ts";
import { onlyFilter, type ViewState } from "../view-state.ts";
import { commandProblem, confirmCommand, type OperatorCommand } from "./command-buttons.ts";
import { acceptInventory, pauseOrResume, resetBreaker } from "./daemon-commands.ts";

/** A command of the palette. */
interface PaletteEntry {
  readonly name: string;
  /** Its kind, effect or shortcut, or why it is disabled. */
  readonly note: string;
  readonly isDisabled?: boolean;
  run(): void;
}

/** What the commands of the palette depend on. */
interface PaletteContext {
  readonly view: ViewState;
  readonly fleet: FleetModel | null;
  readonly status: Status | null;
  navigate(change: Partial<ViewState>): void;
  focusSearch(): void;
}

/** Opens the command palette, which lists the commands and nodes that match a text. Arrow keys and Enter choose one. */
export function openPalette(context: PaletteContext): void {
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
          id: `palette-${index}`,
          role: "option",
          "aria-selected": String(index === chosen),
          "aria-disabled": entry.isDisabled === true ? "true" : null,
          onclick: () => run(entry),
        },
        createElement("span", entry.name),
        createElement("span.muted", entry.note),
      ),
    );
    replaceChildren(list, items.length === 0 ? [createElement("div.muted", "Nothing matches.")] : items);
    items[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const search = () => {
    shown = paletteEntries(context, input.value.trim());
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

/** Maximum number of nodes among the entries. */
const NODES_LISTED_MAX = 6;

/** Returns the commands and nodes that match a text. */
function paletteEntries(context: PaletteContext, text: string): readonly PaletteEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const entries = [...operatorEntries(context), ...viewEntries(context)];
  return [
    ...entries.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word))),
    ...nodeEntries(context, text),
  ];
}

function operatorEntries({ view: { node }, fleet, status }: PaletteContext): readonly PaletteEntry[] {
  if (status === null) return [];
  const problem = commandProblem();
  const entry = (command: OperatorCommand, name = command.name): PaletteEntry => ({
    name,
    note: problem ?? "operator command",
    isDisabled: problem !== null,
    run: () => confirmCommand(command),
  });
  const daemon = [entry(pauseOrResume(status)), entry(resetBreaker), entry(acceptInventory)];
  if (node === null) return daemon;
  const name = nodeName(fleet, node);
  const subject = { id: node, name };
  return [entry(holdCommand(subject), `Hold ${name}`), entry(releaseCommand(subject), `Release ${name}`), ...daemon];
}

function viewEntries({ view, navigate, focusSearch }: PaletteContext): readonly PaletteEntry[] {
  const show = (name: string, note: string, change: Partial<ViewState>): PaletteEntry => ({
    name,
    note,
    run: () => navigate(change),
  });
  return [
    { name: "Find nodes", note: "/", run: focusSearch },
    view.view === "grid"
      ? show("Show the table of all nodes", "view", { view: "table" })
      : show("Show the grid of nodes", "view", { view: "grid" }),
    show("Show all nodes", "removes the filter", onlyFilter({})),
    show("Show nodes that need attention", "filter", onlyFilter({ remediation: ATTENTION })),
    ...REMEDIATION_STATES.map(({ name, label }) =>
      show(`Show nodes: ${label}`, "filter", onlyFilter({ remediation: name })),
    ),
    { name: "Change the theme", note: "system, light, dark", run: () => byId("theme").click() },
  ];
}

const nodeEntries = ({ fleet, navigate }: PaletteContext, text: string): readonly PaletteEntry[] =>
  (searchNodes(fleet, text) ?? []).slice(0, NODES_LISTED_MAX).map(({ id, name, region, country }) => ({
    name: `Open ${name}`,
    note: `${region} ${country}`,
    run: () => navigate({ node: id }),
  }));
