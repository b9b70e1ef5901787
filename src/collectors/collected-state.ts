import { createListBehavior, type ListBehavior } from "../api-client/pagination/list-behavior.ts";
import { byName } from "../base/by-name.ts";
import { runAtOnce } from "../base/steps.ts";
import { Inventory } from "../inventory/inventory.ts";
import { LabelCounts } from "../inventory/label-counts.ts";
import { SessionTotals } from "../inventory/sessions/session-totals.ts";
import { SessionWalkHistory } from "../inventory/sessions/session-walks.ts";
import type { UsageScale } from "../inventory/usage-scale.ts";
import type { OnLabelsFolded } from "../model/label-values.ts";
import type { FactStore } from "../model/ports.ts";
import type { HourlyEntry, SessionStatistics } from "../model/session.ts";
import { COLLECTORS, type Collector, type Dated } from "../model/snapshot.ts";
import { CollectorReporter, type CollectorReporterDeps } from "./collector-health.ts";
import { createCollectorHistory, NETWORK_SIZE_FACT, type NetworkSize, storedNetworkSize } from "./polling-plan.ts";
import type { LastStart } from "./schedule.ts";

/** What has been collected so far. It survives a reload, which starts a new collector manager. */
export type CollectedState = ReturnType<typeof createCollectedState>;

/** Key of the fact that the list has shown a failed session. Until then the number of failures is unknown, not zero. */
export const FAILED_SESSIONS_LISTED_FACT = "sessions.failed_listed";

/** Creates the state of a process that has collected nothing yet. `facts` are those of earlier processes. */
export function createCollectedState(
  { usageScale, pageLimit }: { readonly usageScale: UsageScale; readonly pageLimit: number },
  facts: FactStore,
  deps: CollectorReporterDeps,
) {
  const onFolded: OnLabelsFolded = (family, records) =>
    deps.metrics.inc("proxywarden_labels_folded_total", { family }, records);
  const inventory: Inventory = new Inventory(usageScale, (id) => sessions.forgetNode(id));
  const sessions = new SessionTotals(facts.read(FAILED_SESSIONS_LISTED_FACT) === "true", {
    isKnownNode: (id) => inventory.has(id),
    isFleetKnown: () => inventory.isKnown(),
    onFolded,
  });
  return {
    facts,
    inventory,
    sessions,
    sessionWalks: new SessionWalkHistory(storedNetworkSize(facts.read(NETWORK_SIZE_FACT)).sessions),
    capTopLists: createTopListCaps(onFolded),
    reporters: byName(COLLECTORS, (collector) => new CollectorReporter(collector, deps)),
    stats: null as Dated<SessionStatistics> | null,
    hourly: null as Dated<readonly HourlyEntry[]> | null,
    /** Sequence number of the last snapshot. */
    sequence: 0,
    listBehavior: createListBehaviors(pageLimit),
    collectorHistory: createCollectorHistory(),
    /** When each collector last started. */
    lastStarts: new Map<Collector, LastStart>(),
  };
}

/** Returns the size of the network as far as it has been seen. */
export function networkSizeOf({ inventory, sessions, sessionWalks, listBehavior }: CollectedState): NetworkSize {
  const shown = sessions.view()?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  const listed = Math.max(shown, sessionWalks.trusted());
  return {
    nodes: inventory.count(),
    nodePages: pageCount(inventory.count(), listBehavior.nodes),
    sessions: listed,
    sessionPages: pageCount(listed, listBehavior.sessions),
  };
}

/** Creates the observed behavior of both lists. `limit` is the page size to request. */
export const createListBehaviors = (limit: number) => ({
  nodes: createListBehavior(limit),
  sessions: createListBehavior(limit),
});

const pageCount = (records: number, listBehavior: ListBehavior): number =>
  Math.ceil(records / (listBehavior.pageSize ?? listBehavior.limit));

/** Stores, once, that the list shows failed sessions. */
export function recordFailedSessionsListed({ sessions, facts }: CollectedState): void {
  if (sessions.view()?.failedListed !== true || facts.read(FAILED_SESSIONS_LISTED_FACT) === "true") return;
  facts.write(FAILED_SESSIONS_LISTED_FACT, "true");
}

/** Creates a function that caps the label values of the top lists. A value keeps its series while it is listed. */
export function createTopListCaps(onFolded: OnLabelsFolded) {
  const countries = new LabelCounts("proxynet_stats_country_sessions", onFolded);
  const protocols = new LabelCounts("proxynet_stats_protocol_sessions", onFolded);
  return (stats: SessionStatistics): SessionStatistics => {
    for (const [country, sessions] of stats.topCountries) countries.add(country, sessions);
    for (const [protocol, sessions] of stats.topProtocols) protocols.add(protocol, sessions);
    return {
      ...stats,
      topCountries: [...runAtOnce(countries.finish())],
      topProtocols: [...runAtOnce(protocols.finish())],
    };
  };
}
