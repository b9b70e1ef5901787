import type { ActionView, DecisionView } from "../../api/row-views.ts";
import {
  type Budget,
  fetchApprovals,
  fetchFleet,
  getJson,
  type HistoryDocument,
  type Policy,
  type RowList,
  type Status,
} from "./api.ts";
import { Connection } from "./connection.ts";
import { byId, createFiller } from "./dom.ts";
import { connectStream } from "./event-stream.ts";
import { applyChange, type Cell, type FleetModel, readFleet, statusOf } from "./fleet/fleet.ts";
import { Grid } from "./fleet/grid.ts";
import { showLegend, showRings } from "./fleet/legend.ts";
import { NodePanel } from "./node/node-panel.ts";
import { createActivity } from "./panels/activity.ts";
import { redrawCharts, showHistory, startCharts } from "./panels/charts.ts";
import { showApprovals, showNodesNeedingAttention, showSearchResults } from "./panels/lists.ts";
import { commandButton, forgetToken, hasToken, onCommandDone } from "./panels/operator-commands.ts";
import { showPolicies } from "./panels/policies.ts";
import { showBudget, showFreshness } from "./panels/rate-limit-gauges.ts";
import { pause, resume, showBanners, showChips, showTiles } from "./panels/summary.ts";
import { startTheme } from "./theme.ts";

/** Interval of polling what has no events. */
const STATUS_INTERVAL_MS = 3_000;
/** Interval of the server's samples. */
const HISTORY_INTERVAL_MS = 10_000;
/** Interval of polling the fleet without events. */
const FLEET_INTERVAL_MS = 10_000;
/** Events within this time are handled together. */
const BATCH_DELAY_MS = 150;
const ROWS_SHOWN = 100;

/** Current data; null: none yet. */
const pageState: { fleet: FleetModel | null; status: Status | null; budget: Budget | null } = {
  fleet: null,
  status: null,
  budget: null,
};
const connection = new Connection();
let isStreaming = false;
/** What the grid highlights: the nodes of one status, or those found. */
const selection: { status: string | null; found: ReadonlySet<Cell> | null } = { status: null, found: null };

const panel = new NodePanel(() => {
  location.hash = "";
  grid.focus();
});
const grid = new Grid((id) => {
  location.hash = `node/${encodeURIComponent(id)}`;
});
const fillPause = createFiller(byId("pause"));
const activity = createActivity((node) => pageState.fleet?.byId.get(node)?.name ?? node);

/** Creates a function that runs `work` soon, once for several calls, and again if called while it runs. */
function batched(work: () => Promise<void>): () => void {
  let state: "idle" | "due" | "running" | "again" = "idle";
  const start = () => {
    state = "due";
    setTimeout(async () => {
      state = "running";
      await work();
      const isWanted = (state as string) === "again";
      state = "idle";
      if (isWanted) start();
    }, BATCH_DELAY_MS);
  };
  return () => {
    if (state === "idle") start();
    else if (state === "running") state = "again";
  };
}

const refreshFleet = batched(async () => {
  const answer = await fetchFleet();
  if (!answer.ok) return;
  pageState.fleet = readFleet(answer.value);
  grid.show(pageState.fleet);
  showFleet();
});

const refreshStatus = batched(async () => {
  const [status, budget, policies, waiting] = await Promise.all([
    getJson<Status>("status"),
    getJson<Budget>("budget"),
    getJson<RowList<Policy>>("policies"),
    fetchApprovals(),
  ]);
  if (!status.ok) {
    connection.noteFailure(status.error.message);
    return;
  }
  const { now, takes_orders } = status.value;
  if (connection.noteAnswer(now, takes_orders)) {
    reconnectStream();
    refreshAll();
  }
  showStatus(status.value);
  if (budget.ok) {
    pageState.budget = budget.value;
    showBudget(budget.value, Date.parse(now));
  }
  if (policies.ok) showPolicies(policies.value.data);
  if (waiting.ok) showApprovals(waiting.value.data, pageState.fleet, Date.parse(now));
  showTiles(pageState.fleet, pageState.status, pageState.budget);
});

const refreshRows = batched(async () => {
  const [decisions, actions] = await Promise.all([
    getJson<RowList<DecisionView>>(`decisions?limit=${ROWS_SHOWN}`),
    getJson<RowList<ActionView>>(`actions?limit=${ROWS_SHOWN}`),
  ]);
  if (decisions.ok && actions.ok) activity.show(decisions.value.data, actions.value.data);
});

const refreshHistory = batched(async () => {
  const answer = await getJson<HistoryDocument>("history");
  if (answer.ok) showHistory(answer.value);
});

function refreshAll(): void {
  for (const refresh of [refreshFleet, refreshStatus, refreshRows, refreshHistory]) refresh();
}

function showStatus(status: Status): void {
  pageState.status = status;
  fillPause(status.warden.paused === null, () => [
    commandButton(status.warden.paused === null ? pause : resume, "pause"),
  ]);
  showChips(status);
  showBanners(status);
  showFreshness(status);
}

function showFleet(): void {
  if (pageState.fleet === null) return;
  showLegend(pageState.fleet, selection.status, (status) => {
    selection.status = status;
    applySelection();
    showFleet();
  });
  showNodesNeedingAttention(pageState.fleet);
  showTiles(pageState.fleet, pageState.status, pageState.budget);
}

function applySelection(): void {
  const { status, found } = selection;
  const shows = (cell: Cell) =>
    (status === null || statusOf(pageState.fleet!, cell) === status) && (found === null || found.has(cell));
  grid.highlight(status === null && found === null ? null : shows);
}

function showChosenNode(): void {
  // URLSearchParams accepts invalid escapes.
  const [, id] = /^#node\/(.+)$/.exec(location.hash) ?? [];
  const node = id === undefined ? null : new URLSearchParams(`id=${id.replaceAll("+", "%2B")}`).get("id");
  grid.select(node);
  panel.open(node);
}

function applySearch(): void {
  const input = byId<HTMLInputElement>("search");
  const found = showSearchResults(pageState.fleet, input.value);
  selection.found = input.value.trim() === "" ? null : new Set(found);
  applySelection();
}

const reconnectStream = connectStream({
  hello(revision) {
    if (pageState.fleet?.revision !== revision) refreshFleet();
  },
  fleet(change) {
    if (pageState.fleet === null) return refreshFleet();
    const slots = applyChange(pageState.fleet, change);
    if (slots === null) return refreshFleet();
    grid.touch(slots);
    showFleet();
    panel.refresh(null);
  },
  decision(row) {
    activity.decision(row);
    panel.refresh(row.node);
    refreshStatus();
  },
  action(row) {
    activity.action(row);
    panel.refresh(row.node);
    refreshStatus();
  },
  missed: refreshAll,
  state(isLive) {
    isStreaming = isLive;
    connection.noteEvents(isLive);
    if (!isLive) refreshStatus();
  },
});

const repeatWhileVisible = (ms: number, work: () => void) =>
  setInterval(() => {
    if (!document.hidden) work();
  }, ms);

startTheme(() => {
  grid.repaint();
  redrawCharts();
});
startCharts();
showRings();
byId("forget").hidden = !hasToken();
byId("forget").addEventListener("click", forgetToken);
byId("search").addEventListener("input", applySearch);
addEventListener("hashchange", showChosenNode);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) for (const refresh of [refreshStatus, refreshHistory]) refresh();
});
onCommandDone(() => {
  refreshStatus();
  panel.refresh(null);
});
repeatWhileVisible(STATUS_INTERVAL_MS, () => {
  refreshStatus();
  panel.refresh(null);
});
repeatWhileVisible(HISTORY_INTERVAL_MS, refreshHistory);
repeatWhileVisible(FLEET_INTERVAL_MS, () => {
  if (!isStreaming) {
    refreshFleet();
    refreshRows();
  }
});
refreshAll();
showChosenNode();
