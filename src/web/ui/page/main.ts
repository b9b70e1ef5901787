import type { ActionView, DecisionView } from "../../api/row-views.ts";
import { createActivity } from "./panels/activity.ts";
import {
  approvals,
  ask,
  type Budget,
  type FleetDocument,
  type HistoryDocument,
  type Policy,
  type Rows,
  type Status,
} from "./api.ts";
import { recolourCharts, showHistory, startCharts } from "./panels/charts.ts";
import { byId } from "./dom.ts";
import { applyChange, type Cell, type FleetModel, readFleet, statusOf } from "./fleet/fleet.ts";
import { showBudget, showFreshness } from "./panels/rate-limit-gauges.ts";
import { createGrid } from "./fleet/grid.ts";
import { showLegend, showRings } from "./fleet/legend.ts";
import { showApprovals, showFound, showTrouble } from "./panels/lists.ts";
import { allowOrders, confirmOrder, forgetToken, hasToken, onOrderDone, READ_ONLY } from "./panels/operator-commands.ts";
import { createPanel } from "./node/node-panel.ts";
import { showPolicies } from "./panels/policies.ts";
import { listen } from "./event-stream.ts";
import { pause, resume, showBanners, showChips, showTiles } from "./panels/summary.ts";
import { startTheme } from "./theme.ts";

/** Between two looks at what is not told as it happens. */
const LOOK_MS = 3_000;
/** As often as the server keeps a sample. */
const HISTORY_MS = 10_000;
/** Without events, the fleet is asked for this often. */
const FLEET_MS = 10_000;
/** What comes in a burst is shown, and asked about, once. */
const SETTLE_MS = 150;
const ROWS = 100;

/** What is known now; null: nothing yet. */
const known: { fleet: FleetModel | null; status: Status | null; budget: Budget | null; isLive: boolean } = {
  fleet: null,
  status: null,
  budget: null,
  isLive: false,
};
/** What the grid lights: the nodes of one status, or those found. */
const chosen: { status: string | null; found: ReadonlySet<Cell> | null } = { status: null, found: null };

const panel = createPanel(() => {
  location.hash = "";
  grid.focus();
});
const grid = createGrid((id) => {
  location.hash = `node/${encodeURIComponent(id)}`;
});
const activity = createActivity((node) => known.fleet?.byId.get(node)?.name ?? node);

/** Does something soon, and once however often it is wanted until then; again after it, if it is wanted while it runs. */
function soon(work: () => Promise<void>): () => void {
  let state: "idle" | "due" | "running" | "again" = "idle";
  const start = () => {
    state = "due";
    setTimeout(async () => {
      state = "running";
      await work();
      const isWanted = (state as string) === "again";
      state = "idle";
      if (isWanted) start();
    }, SETTLE_MS);
  };
  return () => {
    if (state === "idle") start();
    else if (state === "running") state = "again";
  };
}

const readFleetSoon = soon(async () => {
  const answer = await ask<FleetDocument>("fleet");
  if (!answer.ok) return;
  known.fleet = readFleet(answer.value);
  grid.show(known.fleet);
  showFleet();
});

const lookSoon = soon(async () => {
  const [status, budget, policies, waiting] = await Promise.all([
    ask<Status>("status"),
    ask<Budget>("budget"),
    ask<Rows<Policy>>("policies"),
    approvals(),
  ]);
  showConnection(status.ok);
  if (status.ok) showStatus(status.value);
  if (budget.ok && status.ok) {
    known.budget = budget.value;
    showBudget(budget.value, Date.parse(status.value.now));
  }
  if (policies.ok) showPolicies(policies.value.data);
  if (waiting.ok && status.ok) showApprovals(waiting.value.data, known.fleet, Date.parse(status.value.now));
  showTiles(known.fleet, known.status, known.budget);
});

const readRowsSoon = soon(async () => {
  const [decisions, actions] = await Promise.all([
    ask<Rows<DecisionView>>(`decisions?limit=${ROWS}`),
    ask<Rows<ActionView>>(`actions?limit=${ROWS}`),
  ]);
  if (decisions.ok && actions.ok) activity.show(decisions.value.data, actions.value.data);
});

const readHistorySoon = soon(async () => {
  const answer = await ask<HistoryDocument>("history");
  if (answer.ok) showHistory(answer.value);
});

function showStatus(status: Status): void {
  const isOther = known.status?.takes_orders !== status.takes_orders;
  known.status = status;
  allowOrders(status.takes_orders);
  // Its buttons say whether they can be pressed.
  if (isOther) panel.refresh(null);
  byId("readonly").hidden = status.takes_orders;
  const button = byId<HTMLButtonElement>("pause");
  const order = status.warden.paused === null ? pause : resume;
  button.textContent = order.name;
  button.disabled = !status.takes_orders;
  button.title = status.takes_orders ? order.meaning : READ_ONLY;
  button.onclick = () => confirmOrder(order);
  showChips(status);
  showBanners(status);
  showFreshness(status);
}

function showConnection(isAnswering: boolean): void {
  const chip = byId("connection");
  const [text, tone] = !isAnswering ? ["no answer", "bad"] : known.isLive ? ["live", "good"] : ["polling", "wait"];
  if (chip.textContent !== text) chip.textContent = text;
  chip.className = `chip connection tone-${tone}`;
}

function showFleet(): void {
  if (known.fleet === null) return;
  showLegend(known.fleet, chosen.status, (status) => {
    chosen.status = status;
    choose();
    showFleet();
  });
  showTrouble(known.fleet);
  showTiles(known.fleet, known.status, known.budget);
}

function choose(): void {
  const { status, found } = chosen;
  const shows = (cell: Cell) =>
    (status === null || statusOf(known.fleet!, cell) === status) && (found === null || found.has(cell));
  grid.choose(status === null && found === null ? null : shows);
}

function showChosenNode(): void {
  // Read as a parameter, which no odd escape makes an error.
  const [, id] = /^#node\/(.+)$/.exec(location.hash) ?? [];
  const node = id === undefined ? null : new URLSearchParams(`id=${id.replaceAll("+", "%2B")}`).get("id");
  grid.select(node);
  panel.open(node);
}

function find(): void {
  const input = byId<HTMLInputElement>("search");
  const found = showFound(known.fleet, input.value);
  chosen.found = input.value.trim() === "" ? null : new Set(found);
  choose();
}

listen({
  hello(revision) {
    if (known.fleet?.revision !== revision) readFleetSoon();
  },
  fleet(change) {
    if (known.fleet === null) return readFleetSoon();
    const slots = applyChange(known.fleet, change);
    if (slots === null) return readFleetSoon();
    grid.touch(slots);
    showFleet();
    panel.refresh(null);
  },
  decision(row) {
    activity.decision(row);
    panel.refresh(row.node);
    lookSoon();
  },
  action(row) {
    activity.action(row);
    panel.refresh(row.node);
    lookSoon();
  },
  missed: readRowsSoon,
  state(isLive) {
    known.isLive = isLive;
    showConnection(true);
    if (!isLive) lookSoon();
  },
});

const every = (ms: number, work: () => void) =>
  setInterval(() => {
    if (!document.hidden) work();
  }, ms);

startTheme(() => {
  grid.repaint();
  recolourCharts();
});
startCharts();
showRings();
byId("forget").hidden = !hasToken();
byId("forget").addEventListener("click", forgetToken);
byId("search").addEventListener("input", find);
addEventListener("hashchange", showChosenNode);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) for (const read of [lookSoon, readHistorySoon]) read();
});
onOrderDone(() => {
  lookSoon();
  panel.refresh(null);
});
every(LOOK_MS, () => {
  lookSoon();
  panel.refresh(null);
});
every(HISTORY_MS, readHistorySoon);
every(FLEET_MS, () => {
  if (!known.isLive) {
    readFleetSoon();
    readRowsSoon();
  }
});
for (const read of [readFleetSoon, lookSoon, readRowsSoon, readHistorySoon]) read();
showChosenNode();
