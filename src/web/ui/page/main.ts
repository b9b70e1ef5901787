import { ActivityList } from "./activity/activity-list.ts";
import { byId, createButton, createElement, fill, showChoice } from "./dom.ts";
import { type FleetModel, nodeName } from "./fleet/fleet.ts";
import { Grid } from "./fleet/grid.ts";
import { showLegend } from "./fleet/legend.ts";
import { compileFilter, filterLabel } from "./fleet/node-filter.ts";
import { countNoun, formatCount } from "./format.ts";
import { LiveData } from "./live-data.ts";
import { NodePanel } from "./node/node-panel.ts";
import { showNodesNeedingAttention } from "./nodes/attention-list.ts";
import { NodeTable } from "./nodes/node-table.ts";
import { showSearchResults } from "./nodes/search-results.ts";
import { showApprovals } from "./panels/approvals.ts";
import { showBanners } from "./panels/banners.ts";
import { redrawCharts, showHistory, startCharts } from "./panels/charts.ts";
import { commandButton, forgetToken, hasToken, onCommandDone } from "./panels/command-buttons.ts";
import { openPalette } from "./panels/command-palette.ts";
import { pauseOrResume } from "./panels/daemon-commands.ts";
import { showPolicies } from "./panels/policies.ts";
import { showBudget, showFreshness } from "./panels/rate-limit-gauges.ts";
import { showChips, showTiles } from "./panels/summary.ts";
import { startTheme } from "./theme.ts";
import { formatFragment, onlyFilter, parseFragment, type ViewState } from "./view-state.ts";

/** Matches phones, where the grid is so tall that the effect of a filter would not be visible. */
const PHONE = matchMedia("(max-width: 719px)");

let view = parseFragment(location.hash);

/** Changes the view as a new entry of the browser history. */
function navigate(change: Partial<ViewState>): void {
  location.hash = formatFragment({ ...view, ...change });
}

/** Changes the view in the current entry of the browser history. */
function adjust(change: Partial<ViewState>): void {
  view = { ...view, ...change };
  history.replaceState(null, "", formatFragment(view));
  showView();
}

const panel = new NodePanel(() => navigate({ node: null }));
const grid = new Grid((node) => navigate({ node }));
const table = new NodeTable((tableOrder) => navigate({ tableOrder }));
const activity = new ActivityList((node) => nodeName(data.fleet, node));
const search = byId<HTMLInputElement>("search");

const data = new LiveData({
  fleet(fleet) {
    // The filter is set first, so that the grid is painted once.
    showFilter();
    grid.show(fleet);
    grid.select(view.node);
    showFleet(fleet);
    activity.repaint();
  },
  nodesChanged(indexes) {
    grid.touch(indexes);
    if (data.fleet !== null && indexes.length > 0) showFleet(data.fleet);
    panel.refresh(null);
  },
  status(status) {
    const command = pauseOrResume(status);
    fill(byId("pause"), command.name, () => [commandButton(command, "pause")]);
    showChips(status);
    showBanners(status);
    showFreshness(status);
    panel.setStatus(status);
    showTiles(data.knownFleet, status, data.budget, view);
    // The status says whether an empty fleet is known.
    if (data.fleet?.cells.length === 0) showFleet(data.fleet);
    activity.followDay();
    panel.refresh(null);
  },
  // The panel may cover the note that the connection is lost, so it shows that too.
  statusFailed: () => panel.refresh(null),
  budget: showBudget,
  policies: showPolicies,
  approvals: (actions, now) => showApprovals(actions, data.fleet, now),
  history: showHistory,
  line(line) {
    activity.put(line);
    if (line.node !== null) panel.refresh(line.node);
  },
  rowsMissed: () => activity.load(),
});

/** Updates the counts and lists that depend on the statuses and marks of nodes. */
function showFleet(fleet: FleetModel): void {
  const isKnown = data.knownFleet !== null;
  showLegend(fleet, isKnown, view, (filter) => navigate({ ...filter, page: 1 }));
  showTiles(data.knownFleet, data.status, data.budget, view);
  const passes = compileFilter(fleet, view);
  const nodes = passes === null ? fleet.indexes : fleet.indexes.filter((index) => passes(fleet.cells[index]!));
  showNodesNeedingAttention(fleet, isKnown, nodes, view, navigate);
  if (view.view === "table") table.show(fleet, isKnown, nodes, view.tableOrder);
  showSearchResults(fleet, view.search);
  showFilterCount(passes === null ? null : nodes.length, fleet.cells.length);
}

/** Shows the view that the address describes. */
function showView(): void {
  // While the user types, the field may also have blanks around the text.
  if (search.value.trim() !== view.search) search.value = view.search;
  activity.show(view.activity, (kind) => navigate({ activity: kind }));
  for (const id of ["grid", "grid-help"]) byId(id).hidden = view.view !== "grid";
  byId("node-table").hidden = view.view !== "table";
  showChoice(byId("view"), ["grid", "table"], view.view, (chosen) => navigate({ view: chosen }));
  showFilter();
  grid.select(view.node);
  panel.open(view.node);
  if (data.fleet !== null) showFleet(data.fleet);
}

/** Identifies a filter. */
const filterKey = ({ status, remediation, search: text }: ViewState): string =>
  JSON.stringify([status, remediation, text]);

let shownFilter: { readonly fleet: FleetModel | null; readonly filter: string } = { fleet: null, filter: "" };

/** Dims the nodes that the filter rejects. */
function showFilter(): void {
  const { fleet } = data;
  const filter = filterKey(view);
  if (fleet === null || (fleet === shownFilter.fleet && filter === shownFilter.filter)) return;
  shownFilter = { fleet, filter };
  grid.highlight(compileFilter(fleet, view));
}

let announcedFilter = "";

/** Shows how many nodes pass the filter, which it is, and a button that removes it. Null means that there is no filter. */
function showFilterCount(count: number | null, total: number): void {
  const clear = () => navigate(onlyFilter({}));
  const counts = `${formatCount(count)} of ${countNoun(total, "node")}`;
  const text = count === null ? "" : [counts, filterLabel(view)].filter(Boolean).join(": ");
  fill(byId("filter"), text, () =>
    text === "" ? [] : [createElement("span", text), createButton("Clear filter", "clear", clear)],
  );
  // A screen reader announces the count when the user changes the filter, but not whenever the fleet changes.
  const filter = filterKey(view);
  if (filter !== announcedFilter) byId("filter-announcement").textContent = text;
  announcedFilter = filter;
}

function pressKey(event: KeyboardEvent): void {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    showPalette();
  } else if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    focusSearch();
  } else return;
  event.preventDefault();
}

/** Moves the focus to the search, and closes the panel if it covers it. */
function focusSearch(): void {
  if (document.querySelector("dialog[open]") !== null) return;
  if (search.closest("[inert]") !== null) {
    panel.open(null);
    navigate({ node: null });
  }
  search.focus();
  search.select();
}

const showPalette = () => openPalette({ view, fleet: data.fleet, status: data.status, navigate, focusSearch });

startTheme(() => {
  grid.repaint();
  redrawCharts();
});
startCharts();
byId("forget").hidden = !hasToken();
byId("forget").addEventListener("click", () => {
  forgetToken();
  // The button is hidden now.
  byId("commands").focus();
});
byId("commands").addEventListener("click", showPalette);
byId("tiles").addEventListener("click", () => {
  if (PHONE.matches && view.view === "grid") byId("attention-card").scrollIntoView();
});
search.addEventListener("input", () => adjust({ search: search.value.trim(), page: 1 }));
search.addEventListener("focus", () => showSearchResults(data.fleet, view.search));
byId("search-box").addEventListener("focusout", () => setTimeout(() => showSearchResults(data.fleet, view.search)));
document.addEventListener("keydown", pressKey);
addEventListener("hashchange", () => {
  view = parseFragment(location.hash, view);
  // A link may name only a node or a section, so the rest of the view is added to the address.
  history.replaceState(null, "", formatFragment(view));
  showView();
});
onCommandDone(() => {
  data.refreshStatus();
  panel.refresh(null);
});
showView();
