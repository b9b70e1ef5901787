import type { Budget, Status } from "../api.ts";
import { byId, createElement, createFiller, replaceChildren } from "../dom.ts";
import { countNodes, type FleetModel } from "../fleet/fleet.ts";
import { ATTENTION } from "../fleet/node-filter.ts";
import { needsAttention, REMEDIATION_STATES } from "../fleet/remediation-states.ts";
import { ringElement } from "../fleet/status-icon.ts";
import { countNoun, formatCount, formatDuration, formatPercent, humanize } from "../format.ts";
import { formatFragment, onlyFilter, type ViewState } from "../view-state.ts";

const fillTiles = createFiller(byId("tiles"));
const fillChips = createFiller(byId("chips"));

/** Shortest interval between two screen reader announcements. */
const ANNOUNCE_INTERVAL_MS = 15_000;
let announcedAt = Number.NEGATIVE_INFINITY;

/** A number at the top with its link. */
interface Tile {
  readonly name: string;
  readonly value: string;
  readonly note: string;
  readonly href: string;
  /** Its color if the value is not 0, which is `is-tile-TONE` in the style sheet. */
  readonly tone?: string;
  /** The state of remediation whose ring the grid draws. */
  readonly ring?: string;
}

/** Shows the numbers at the top. */
export function showTiles(
  fleet: FleetModel | null,
  status: Status | null,
  budget: Budget | null,
  view: ViewState,
): void {
  /** Returns the address of the view with another filter. */
  const filtered = (filter: Partial<ViewState>) => formatFragment({ ...view, node: null, ...onlyFilter(filter) });
  const total = fleet?.cells.length ?? null;
  const online = fleet && countNodes(fleet, (status) => status === "online");
  const attention = fleet && countNodes(fleet, needsAttention);
  const month = budget?.month ?? null;
  const tiles: readonly Tile[] = [
    {
      name: "Online",
      value: formatPercent(online === null || !total ? null : online / total),
      note: `${formatCount(online)} of ${formatCount(total)} nodes`,
      href: filtered({ status: "online" }),
    },
    {
      ...{ name: "Needs attention", value: formatCount(attention), note: "nodes", tone: attention ? "bad" : "" },
      href: filtered({ remediation: ATTENTION }),
    },
    ...REMEDIATION_STATES.filter(({ name }) => TILE_NOTES[name] !== undefined).map(({ name, label, marks }): Tile => {
      const count = fleet && countNodes(fleet, (_, mark) => marks.includes(mark));
      const note = name === "treated" ? `${formatCount(status?.warden.in_flight)} in flight` : TILE_NOTES[name]!;
      const href = filtered({ remediation: name });
      return { name: capitalize(label), value: formatCount(count), note, href, ring: name, tone: count ? name : "" };
    }),
    {
      ...{ name: "Active sessions", value: formatCount(status?.sessions?.active), href: "#charts-card" },
      note: `of ${formatCount(status?.sessions?.total)} listed`,
    },
    {
      ...{ name: "Calls this month", value: formatCount(month?.calls), href: "#budget-card" },
      note: month?.calls_limit ? `of ${formatCount(month.calls_limit)}` : "no monthly limit",
    },
  ];
  fillTiles(tiles, () =>
    tiles.map(({ name, value, note, href, tone, ring }) =>
      createElement(
        "a",
        { class: `tile ${tone ? `is-tile-${tone}` : ""}`, href, "data-k": `tile ${name}` },
        createElement("span", { class: "tile-name" }, name),
        createElement("b", {}, ring === undefined ? null : ringElement(ring), value),
        createElement("small", { class: "muted" }, note),
      ),
    ),
  );
  if (online === null || performance.now() - announcedAt < ANNOUNCE_INTERVAL_MS) return;
  announcedAt = performance.now();
  byId("announcement").textContent =
    `${formatCount(online)} of ${countNoun(total ?? 0, "node")} online, ${formatCount(attention)} ${attention === 1 ? "needs" : "need"} attention`;
}

/** The states of remediation that have a tile, with its note. */
const TILE_NOTES: Readonly<Record<string, string>> = {
  treated: "",
  in_flight: "for a free slot",
  canary: "for a first success",
  held: "not acted on now",
  awaiting: "by an operator",
};

const capitalize = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Shows the mode and the uptime of the daemon. */
export function showChips(status: Status): void {
  const { mode } = status.warden;
  const up = (Date.parse(status.now) - Date.parse(status.started_at)) / 1_000;
  const modes: Readonly<Record<string, string>> = {
    dry_run: "No action is sent. Policies only record what they would do.",
    approve: "Every action waits for an operator's approval.",
    enforce: "Policies act as their own modes allow.",
  };
  const runs = up < 60 ? "just started" : `up ${formatDuration(60 * Math.floor(up / 60))}`;
  fillChips([mode, runs], () => [
    createElement("span", { class: `chip mode-${mode}`, title: modes[mode] ?? "" }, humanize(mode)),
    createElement("span", { class: "chip uptime" }, runs),
  ]);
  replaceChildren(byId("version"), [status.version]);
}
