import type { ActionView, DecisionView } from "../../api/row-views.ts";
import {
  type Budget,
  type FleetDocument,
  fetchApprovals,
  getJson,
  type HistoryDocument,
  type Policy,
  type RowList,
  type Status,
} from "./api.ts";
import { byId } from "./dom.ts";
import { connectStream } from "./event-stream.ts";
import { applyChange, type Cell, type FleetModel, readFleet, statusOf } from "./fleet/fleet.ts";
import { Grid } from "./fleet/grid.ts";
import { showLegend, showRings } from "./fleet/legend.ts";
import { NodePanel } from "./node/node-panel.ts";
import { createActivity } from "./panels/activity.ts";
import { redrawCharts, showHistory, startCharts } from "./panels/charts.ts";
import { showApprovals, showNodesNeedingAttention, showSearchResults } from "./panels/lists.ts";
import {
  confirmCommand,
  forgetToken,
  hasToken,
  onCommandDone,
  READ_ONLY_HINT,
  setCommandsAllowed,
} from "./panels/operator-commands.ts";
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
const pageState: { fleet: FleetModel | null; status: Status | null; budget: Budget | null; isLive: boolean } = {
  fleet: null,
  status: null,
  budget: null,
  isLive: false,
};
/** What the grid highlights: the nodes of one status, or those found. */
const selection: { status: string | null; found: ReadonlySet<Cell> | null } = { status: null, found: null };

const panel = new NodePanel(() => {
  location.hash = "";
  grid.focus();
});
const grid = new Grid((id) => {
  location.hash = `node/${encodeURIComponent(id)}`;
});
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
  const answer = await getJson<FleetDocument>("fleet");
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
  showConnection(status.ok);
  if (status.ok) showStatus(status.value);
  if (budget.ok && status.ok) {
    pageState.budget = budget.value;
    showBudget(budget.value, Date.parse(status.value.now));
  }
  if (policies.ok) showPolicies(policies.value.data);
  if (waiting.ok && status.ok) showApprovals(waiting.value.data, pageState.fleet, Date.parse(status.value.now));
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

function showStatus(status: Status): void {
  const isOther = pageState.status?.takes_orders !== status.takes_orders;
  pageState.status = status;
  setCommandsAllowed(status.takes_orders);
  // The buttons of the panel depend on whether operators are configured.
  if (isOther) panel.refresh(null);
  byId("readonly").hidden = status.takes_orders;
  const button = byId<HTMLButtonElement>("pause");
  const command = status.warden.paused === null ? pause : resume;
  button.textContent = command.name;
  button.disabled = !status.takes_orders;
  button.title = status.takes_orders ? command.meaning : READ_ONLY_HINT;
  button.onclick = () => confirmCommand(command);
  showChips(status);
  showBanners(status);
  showFreshness(status);
}

function showConnection(isAnswering: boolean): void {
  const chip = byId("connection");
  const [text, tone] = !isAnswering ? ["no answer", "bad"] : pageState.isLive ? ["live", "good"] : ["polling", "wait"];
  if (chip.textContent !== text) chip.textContent = text;
  chip.className = `chip connection tone-${tone}`;
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

connectStream({
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
  missed: refreshRows,
  state(isLive) {
    pageState.isLive = isLive;
    showConnection(true);
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
  if (!document.hidden) for (const read of [refreshStatus, refreshHistory]) read();
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
  if (!pageState.isLive) {
    refreshFleet();
    refreshRows();
  }
});
for (const read of [refreshFleet, refreshStatus, refreshRows, refreshHistory]) read();
showChosenNode();
