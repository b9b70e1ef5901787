import type { Budget, Status } from "../api.ts";
import { byId, type Child, fill, filler, h } from "../dom.ts";
import { countStatuses, type FleetModel, markOf, troubled } from "../fleet/fleet.ts";
import { orderButton } from "./operator-commands.ts";
import { count, many, percent, span, timeOfDay, words } from "../format.ts";

const fillTiles = filler(byId("tiles"));
const fillBanners = filler(byId("banners"));
const fillChips = filler(byId("chips"));

/** Shortest interval between two screen reader announcements. */
const SAY_EVERY_MS = 15_000;
let saidAt = Number.NEGATIVE_INFINITY;

/** The numbers at the top. */
export function showTiles(fleet: FleetModel | null, status: Status | null, budget: Budget | null): void {
  const online = fleet === null ? null : (countStatuses(fleet)[fleet.statuses.indexOf("online")] ?? 0);
  const total = fleet?.cells.length ?? null;
  const trouble = fleet === null ? null : troubled(fleet).length;
  const treated = fleet?.cells.filter((cell) => ["episode", "acting"].includes(markOf(fleet, cell))).length ?? null;
  const month = budget?.month ?? null;
  const awaiting = status?.warden.awaiting_approval ?? null;
  const tiles: readonly (readonly [name: string, value: string, note: string, tone: string])[] = [
    [
      "Online",
      percent(online === null || !total ? null : online / total),
      `${count(online)} of ${count(total)} nodes`,
      "",
    ],
    ["Needs attention", count(trouble), "listed below", trouble ? "bad" : ""],
    [
      "Being remediated",
      count(treated),
      `${count(status?.warden.in_flight)} actions not yet verified`,
      treated ? "act" : "",
    ],
    ["Waiting for approval", count(awaiting), "actions", awaiting ? "wait" : ""],
    ["Active sessions", count(status?.sessions?.active), `of ${count(status?.sessions?.total)} listed`, ""],
    [
      "Calls this month",
      count(month?.calls),
      month?.calls_limit ? `of ${count(month.calls_limit)}` : "no monthly limit",
      "",
    ],
  ];
  fillTiles(tiles, () =>
    tiles.map(([name, value, note, tone]) =>
      h(
        "div",
        { class: `tile ${tone === "" ? "" : `is-${tone}`}` },
        h("dt", {}, name),
        h("dd", {}, h("b", {}, value), h("small", { class: "muted" }, note)),
      ),
    ),
  );
  if (online === null || performance.now() - saidAt < SAY_EVERY_MS) return;
  saidAt = performance.now();
  byId("said").textContent = `${count(online)} of ${many(total ?? 0, "node")} online, ${count(trouble)} need attention`;
}

/** What holds every action, each with what a person can do about it. */
export function showBanners(status: Status): void {
  const { warden } = status;
  const now = Date.parse(status.now);
  fillBanners(
    [warden.paused, warden.breaker, warden.trust, warden.storm_until, warden.journal, status.takes_orders],
    () => {
      const banners: Child[] = [];
      const add = (tone: string, title: string, text: string, action: Child = null) =>
        banners.push(h("div", { class: `banner tone-${tone}` }, h("b", {}, title), h("span", {}, text), action));
      if (warden.paused !== null) {
        add(
          "wait",
          "Paused",
          `since ${timeOfDay(warden.paused.at, now)}: ${warden.paused.reason}. All actions are on hold.`,
          orderButton(resume, "resume"),
        );
      }
      if (warden.breaker !== null) {
        const { opened_at, nodes } = warden.breaker;
        add(
          "bad",
          "The breaker is open",
          `since ${timeOfDay(opened_at, now)}: ${many(nodes, "node")} fired. All actions are on hold until an operator resets it.`,
          orderButton(resetBreaker, "reset-breaker"),
        );
      }
      for (const { reason, detail } of warden.trust) {
        add(
          "wait",
          "Fleet data is not trusted; actions are on hold",
          `${words(reason)}: ${detail}`,
          reason === "inventory_shrunk" ? orderButton(acceptInventory, "accept") : null,
        );
      }
      if (warden.storm_until !== null)
        add("wait", "Storm", `actions are on hold until at least ${timeOfDay(warden.storm_until, now)}`);
      if (warden.journal !== null) add("bad", "The journal can't be written", warden.journal);
      return banners;
    },
  );
}

/** The mode, and how long this process runs. */
export function showChips(status: Status): void {
  const { mode } = status.warden;
  const up = (Date.parse(status.now) - Date.parse(status.started_at)) / 1_000;
  const modes: Readonly<Record<string, string>> = {
    dry_run: "nothing is sent: every policy only writes down what it would do",
    approve: "every action waits for a person",
    enforce: "policies act as far as their own modes let them",
  };
  const runs = up < 60 ? "just started" : `up ${span(60 * Math.floor(up / 60))}`;
  fillChips([mode, runs], () => [
    h("span", { class: `chip mode-${mode}`, title: modes[mode] ?? "" }, words(mode)),
    h("span", { class: "chip" }, runs),
  ]);
  fill(byId("version"), [status.version]);
}

/** Holds every action. */
export const pause = {
  path: "pause",
  name: "Pause",
  meaning: "Holds all actions until resumed. Polling continues.",
  hasReason: true,
} as const;

/** Ends the pause. */
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
