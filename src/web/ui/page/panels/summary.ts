import type { Budget, Status } from "../api.ts";
import { byId, type Child, createElement, createFiller, replaceChildren } from "../dom.ts";
import { countStatuses, type FleetModel, markOf, nodesNeedingAttention } from "../fleet/fleet.ts";
import { countNoun, formatCount, formatDuration, formatPercent, humanize, timeOfDay } from "../format.ts";
import { commandButton } from "./operator-commands.ts";

const fillTiles = createFiller(byId("tiles"));
const fillBanners = createFiller(byId("banners"));
const fillChips = createFiller(byId("chips"));

/** Shortest interval between two screen reader announcements. */
const ANNOUNCE_INTERVAL_MS = 15_000;
let announcedAt = Number.NEGATIVE_INFINITY;

/** Shows the numbers at the top. */
export function showTiles(fleet: FleetModel | null, status: Status | null, budget: Budget | null): void {
  const online = fleet === null ? null : (countStatuses(fleet)[fleet.statuses.indexOf("online")] ?? 0);
  const total = fleet?.cells.length ?? null;
  const unhealthy = fleet === null ? null : nodesNeedingAttention(fleet).length;
  const remediated = fleet?.cells.filter((cell) => ["episode", "acting"].includes(markOf(fleet, cell))).length ?? null;
  const month = budget?.month ?? null;
  const awaiting = status?.warden.awaiting_approval ?? null;
  const tiles: readonly (readonly [name: string, value: string, note: string, tone: string])[] = [
    [
      "Online",
      formatPercent(online === null || !total ? null : online / total),
      `${formatCount(online)} of ${formatCount(total)} nodes`,
      "",
    ],
    ["Needs attention", formatCount(unhealthy), "listed below", unhealthy ? "bad" : ""],
    [
      "Being remediated",
      formatCount(remediated),
      `${formatCount(status?.warden.in_flight)} actions not yet verified`,
      remediated ? "act" : "",
    ],
    ["Waiting for approval", formatCount(awaiting), "actions", awaiting ? "wait" : ""],
    ["Active sessions", formatCount(status?.sessions?.active), `of ${formatCount(status?.sessions?.total)} listed`, ""],
    [
      "Calls this month",
      formatCount(month?.calls),
      month?.calls_limit ? `of ${formatCount(month.calls_limit)}` : "no monthly limit",
      "",
    ],
  ];
  fillTiles(tiles, () =>
    tiles.map(([name, value, note, tone]) =>
      createElement(
        "div",
        { class: `tile ${tone === "" ? "" : `is-${tone}`}` },
        createElement("dt", {}, name),
        createElement("dd", {}, createElement("b", {}, value), createElement("small", { class: "muted" }, note)),
      ),
    ),
  );
  if (online === null || performance.now() - announcedAt < ANNOUNCE_INTERVAL_MS) return;
  announcedAt = performance.now();
  byId("announcement").textContent =
    `${formatCount(online)} of ${countNoun(total ?? 0, "node")} online, ${formatCount(unhealthy)} need attention`;
}

/** Shows what holds all actions, and the command that ends it. */
export function showBanners(status: Status): void {
  const { warden: remediation } = status;
  const now = Date.parse(status.now);
  fillBanners(
    [
      remediation.paused,
      remediation.breaker,
      remediation.trust,
      remediation.storm_until,
      remediation.journal,
      status.takes_orders,
      status.leader,
    ],
    () => {
      const banners: Child[] = [];
      const add = (tone: string, title: string, text: string, action: Child = null) =>
        banners.push(
          createElement(
            "div",
            { class: `banner tone-${tone}` },
            createElement("b", {}, title),
            createElement("span", {}, text),
            action,
          ),
        );
      const isStandby = status.leader !== null && !status.leader.is_this;
      if (isStandby) {
        const { name, url } = status.leader;
        const text = `The leader is ${name ?? "not known"}. Fleet and limits are shown there; the rest is read from the journal, and commands are forwarded.`;
        add("hold", "Standby", text, url === null ? null : createElement("a", { href: url }, "Open the leader"));
      }
      if (remediation.paused !== null) {
        add("wait", "Paused", pauseText(remediation.paused, now), commandButton(resume, "resume"));
      }
      if (remediation.breaker !== null) {
        const { opened_at, nodes } = remediation.breaker;
        add(
          "bad",
          "The breaker is open",
          `since ${timeOfDay(opened_at, now)}: ${countNoun(nodes, "node")} fired. All actions are on hold until an operator resets it.`,
          commandButton(resetBreaker, "reset-breaker"),
        );
      }
      for (const { reason, detail } of isStandby ? [] : remediation.trust) {
        add(
          "wait",
          "Fleet data is not trusted; actions are on hold",
          `${humanize(reason)}: ${detail}`,
          reason === "inventory_shrunk" ? commandButton(acceptInventory, "accept") : null,
        );
      }
      if (remediation.storm_until !== null)
        add("wait", "Storm", `actions are on hold until at least ${timeOfDay(remediation.storm_until, now)}`);
      if (remediation.journal !== null) add("bad", "The journal can't be written", remediation.journal);
      return banners;
    },
  );
}

/** Shows the mode and the uptime of the daemon. */
export function showChips(status: Status): void {
  const { mode } = status.warden;
  const up = (Date.parse(status.now) - Date.parse(status.started_at)) / 1_000;
  const modes: Readonly<Record<string, string>> = {
    dry_run: "No action is sent. Policies only record what they would do.",
    approve: "Every action waits for the approval of an operator.",
    enforce: "Policies act as their own modes allow.",
  };
  const runs = up < 60 ? "just started" : `up ${formatDuration(60 * Math.floor(up / 60))}`;
  fillChips([mode, runs], () => [
    createElement("span", { class: `chip mode-${mode}`, title: modes[mode] ?? "" }, humanize(mode)),
    createElement("span", { class: "chip" }, runs),
  ]);
  replaceChildren(byId("version"), [status.version]);
}

function pauseText({ at, until, reason, operator }: NonNullable<Status["warden"]["paused"]>, now: number): string {
  const by = operator === null ? "" : ` by ${operator}`;
  const end = until === null ? "" : `, until ${timeOfDay(until, now)}`;
  return `since ${timeOfDay(at, now)}${by}${end}: ${reason}. All actions are on hold.`;
}

/** The command that pauses all actions. */
export const pause = {
  path: "pause",
  name: "Pause",
  meaning: "Holds all actions until resumed. Polling continues.",
  hasReason: true,
} as const;

/** The command that ends the pause. */
export const resume = { path: "resume", name: "Resume", meaning: "Policies act again.", hasReason: false } as const;

const resetBreaker = {
  path: "breaker/reset",
  name: "Reset breaker",
  meaning: "Closes the breaker and resets its count. Make sure you know why it opened.",
  hasReason: false,
} as const;

const acceptInventory = {
  path: "inventory/accept",
  name: "Accept inventory",
  meaning: "Uses the current node count as the new baseline. Choose this if the missing nodes were removed on purpose.",
  hasReason: false,
} as const;
