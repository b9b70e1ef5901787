import type { Budget, Collector, Status } from "../api.ts";
import { byId, createElement, fill, fillEach } from "../dom.ts";
import { countNodes, type FleetModel } from "../fleet/fleet.ts";
import { ATTENTION } from "../fleet/node-filter.ts";
import { needsAttention, REMEDIATION_STATES } from "../fleet/remediation-states.ts";
import { ringElement } from "../fleet/status-icon.ts";
import { countNoun, formatCount, formatDuration, formatPercent, humanize, NOT_POLLING, standsBy } from "../format.ts";
import { formatFragment, onlyFilter, type ViewState } from "../view-state.ts";

/** Shortest interval between two screen reader announcements. */
const ANNOUNCE_INTERVAL_MS = 15_000;
let announcedAt = Number.NEGATIVE_INFINITY;

/** A number at the top of the page, with a link. */
interface Tile {
  readonly name: string;
  readonly value: string;
  readonly note: string;
  readonly href: string;
  /** Its color, which is `is-tile-TONE` in the style sheet. */
  readonly tone?: string;
  /** The remediation state whose ring is shown. */
  readonly ring?: string;
}

/** Shows the numbers at the top. Null means that the fleet, the status or the budget is not known yet. */
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
  const standby = standsBy(status?.leader) ? NOT_POLLING : null;
  const tiles: readonly Tile[] = [
    {
      name: "Online",
      value: formatPercent(online === null || total === null ? null : online / total),
      note:
        total === null ? (standby ?? "no nodes known yet") : `${formatCount(online)} of ${countNoun(total, "node")}`,
      href: filtered({ status: "online" }),
    },
    {
      name: "Needs attention",
      value: formatCount(attention),
      note: attention === 1 ? "node" : "nodes",
      tone: attention ? "bad" : "none",
      href: filtered({ remediation: ATTENTION }),
    },
    ...REMEDIATION_STATES.filter(({ name }) => TILE_NOTES[name] !== undefined).map(({ name, label, marks }): Tile => {
      const count = fleet && countNodes(fleet, (_, mark) => marks.includes(mark));
      const note = name === "treated" ? `${formatCount(status?.remediation.in_flight)} in flight` : TILE_NOTES[name]!;
      const href = filtered({ remediation: name });
      return {
        name: capitalize(label),
        value: formatCount(count),
        note,
        href,
        ring: name,
        tone: count ? name : "none",
      };
    }),
    {
      name: "Active sessions",
      value: formatCount(status?.sessions?.active),
      href: "#charts-card",
      note: status?.sessions
        ? `of ${formatCount(status.sessions.total)} listed`
        : (standby ?? unreadNote(status?.collectors.sessions)),
    },
    {
      name: "Calls this month",
      value: formatCount(month?.calls),
      href: "#budget-card",
      note: monthNote(month),
    },
  ];
  fillEach(byId("tiles"), tiles, tileElement);
  if (online === null || performance.now() - announcedAt < ANNOUNCE_INTERVAL_MS) return;
  const text = `${formatCount(online)} of ${countNoun(total ?? 0, "node")} online, ${formatCount(attention)} ${attention === 1 ? "needs" : "need"} attention`;
  if (byId("announcement").textContent === text) return;
  announcedAt = performance.now();
  byId("announcement").textContent = text;
}

/** The remediation states that have a tile, with its note. */
const TILE_NOTES: Readonly<Record<string, string>> = {
  treated: "",
  in_flight: "for a free slot",
  canary: "for a first success",
  held: "no action for now",
  awaiting: "by an operator",
};

const unreadNote = (collector: Collector | undefined): string =>
  collector?.planned === null ? "not collected" : "not read yet";

function monthNote(month: Budget["month"] | null): string {
  if (month === null) return "not read yet";
  return month.calls_limit === null ? "no monthly limit" : `of ${formatCount(month.calls_limit)}`;
}

const capitalize = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

const tileElement = ({ name, value, note, href, tone = "none", ring }: Tile): HTMLElement =>
  createElement(
    `a.tile.is-tile-${tone}`,
    { href, "data-k": `tile ${name}` },
    createElement("span.tile-name", name),
    createElement("b", ring === undefined ? null : ringElement(ring), value),
    createElement("small.muted", note),
  );

const MODE_MEANINGS: Readonly<Record<string, string>> = {
  dry_run: "No action is sent. Policies only record what they would do.",
  approve: "Every action waits for an operator's approval.",
  enforce: "Policies act as their own modes allow.",
};

/** Shows the mode, the uptime and the version of the daemon. */
export function showChips({ version, now, started_at, remediation: { mode } }: Status): void {
  const up = (Date.parse(now) - Date.parse(started_at)) / 1_000;
  const runs = up < 60 ? "just started" : `up ${formatDuration(60 * Math.floor(up / 60))}`;
  fill(byId("chips"), [mode, runs], () => [
    createElement(`span.chip.mode-${mode}`, { title: MODE_MEANINGS[mode] }, humanize(mode)),
    createElement("span.chip.uptime", runs),
  ]);
  byId("version").textContent = version;
}
