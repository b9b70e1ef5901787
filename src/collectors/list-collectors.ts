import type { ApiClient } from "../api-client/client.ts";
import type { OnProblem } from "../api-client/decoding/fields.ts";
import { decodeNodeRecord, decodePage, decodeSessionRecord } from "../api-client/decoding/records.ts";
import { listNodesCall, listSessionsCall } from "../api-client/endpoints.ts";
import { isPermanent, isRequestRejected } from "../api-client/errors.ts";
import type { ListWalk } from "../api-client/pagination/list-behavior.ts";
import { walkList } from "../api-client/pagination/list-walk.ts";
import type { WalkReport } from "../api-client/pagination/walk-progress.ts";
import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import { ok } from "../base/result.ts";
import { missingRecords, shownShare, type WalkSummary } from "../inventory/walk-completeness.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import { LABEL_CAPS } from "../model/label-values.ts";
import type { NodeId, NodeRecord } from "../model/node.ts";
import type { Clock } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import { runInSlices } from "../platform/event-loop.ts";
import { callsInFlightMax, callsInFlightNeeded } from "../rate-limit/collector-concurrency.ts";
import { type Limits, pollingCallsPerWindow } from "../rate-limit/limits.ts";
import { CATEGORY_OF_COLLECTOR } from "../scheduling/polling-capacity.ts";
import type { CollectedState } from "./collected-state.ts";
import type { RunOutcome } from "./collector-health.ts";
import { readNodeDetail } from "./detail-collector.ts";

/** Dependencies of the list collectors. */
export interface ListCollectorDeps {
  /** `maxMissing` and `minInventory` are as in the settings of the collector manager. */
  readonly settings: { readonly limits: Limits; readonly maxMissing: Share; readonly minInventory: Share };
  readonly collected: CollectedState;
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly metrics: DaemonMetrics;
}

/**
 * Number of unlisted nodes that may be looked up by id after a walk of at most as many pages. After a longer walk it is
 * one per page, up to {@link LOOKUPS_MAX}.
 */
const LOOKUPS_MIN = 4;
const LOOKUPS_MAX = 50;
/**
 * Consecutive failed lookups after which the rest waits for the next walk, since each may take as long as a timeout.
 */
const LOOKUP_FAILURES_MAX = 2;
/**
 * A detail that was read within this time shows that single nodes can be read, unless the service has answered 404 for
 * a listed node since.
 */
const DETAIL_MS_MAX: DurationMs = 5 * MINUTE_MS;

/** Completes the message about an incomplete walk of the sessions, which no guard explains. */
const SESSIONS_ADVICE = "; policies can't read sessions; if the list always counts too many, run accept-inventory";

/** How the status of a record contradicts that of others. */
const CONTRADICTIONS = {
  older_record: "an earlier response with a later last_seen stated another one",
  contradicting_status: 'another record stated "online" in the meantime, with the same last_seen',
};

/** Reads the node list into the inventory (spec, section 4.1), then looks up known nodes that the list did not show. */
export async function collectNodes(deps: ListCollectorDeps, signal: AbortSignal): Promise<RunOutcome> {
  const { inventory, reporters } = deps.collected;
  const { maxMissing, minInventory } = deps.settings;
  const reportContradiction = ({ id, status }: NodeRecord, reason: keyof typeof CONTRADICTIONS) => {
    const detail = `status is ${JSON.stringify(status)}, but ${CONTRADICTIONS[reason]}`;
    reporters.nodes.reportProblem({ reason, id, detail });
  };
  let rejected = 0;
  const fold = (record: unknown, at: MonotonicMs, onProblem: OnProblem): boolean => {
    const node = decodeNodeRecord(record, onProblem);
    if (node !== null) return inventory.recordListed(node, at, reportContradiction);
    // An unreadable record still accounts for one record of the total.
    rejected++;
    return true;
  };
  const walked = await readList("nodes", deps, fold, signal);
  const report = walked.ok ? walked.value : null;
  const end = walkEndOf(report);
  // If a page failed, every node on it would be looked up, so no node is, unless it keeps failing.
  const isWhole = end === "exact" || end === "inexact";
  if (report !== null && (isWhole || (end === "page_failed" && inventory.history.looksUpFailedPages()))) {
    inventory.endList(minInventory, deps.clock.monotonic(), isWhole);
    await lookUpMissing(deps, Math.min(LOOKUPS_MAX, Math.max(LOOKUPS_MIN, report.pages)), signal);
  }
  const { total = 0, seen = 0, observedFrom = 0 } = report ?? {};
  const walk = inventory.endWalk({ end, total, seen, rejected, maxMissing, observedFrom }, deps.clock.monotonic());
  const folded = inventory.countBeyond(LABEL_CAPS.proxynet_nodes.values);
  if (folded > 0) deps.metrics.inc("proxywarden_labels_folded_total", { family: "proxynet_nodes" }, folded);
  deps.metrics.set("proxywarden_inventory_nodes", { state: "listed" }, walk.seenNodes);
  deps.metrics.set("proxywarden_inventory_nodes", { state: "unlisted" }, inventory.count() - walk.seenNodes);
  return runOutcomeOf(walked, walk.complete, walk.missing);
}

function walkEndOf(report: WalkReport | null): WalkSummary["end"] {
  if (report === null || report.end === "cut") return "cut";
  if (report.end === "reached" && report.error !== null) return "page_failed";
  return report.isExact ? "exact" : "inexact";
}

/**
 * Reads, by id, nodes that the walk did not show. A 404 proves that the node is gone, unless the service also returns
 * 404 for a listed node.
 */
async function lookUpMissing(deps: ListCollectorDeps, max: number, signal: AbortSignal): Promise<void> {
  const { inventory } = deps.collected;
  const ids = inventory.nodesToLookUp(max);
  if (ids.length === 0) return;
  const canLookUp = await canLookUpNodes(deps, signal);
  if (canLookUp === null) {
    inventory.lookups.recordDelay();
    return;
  }
  if (!canLookUp) {
    for (const id of inventory.nodesToLookUp(Number.POSITIVE_INFINITY)) {
      inventory.recordLookup(id, "unknown", deps.clock.monotonic());
    }
    return;
  }
  let failures = 0;
  for (const id of ids) {
    if (signal.aborted || failures >= LOOKUP_FAILURES_MAX) return;
    const { wasSent, error } = await lookUp(deps, id, signal);
    if (!wasSent) inventory.lookups.recordDelay();
    if (!wasSent || error?.kind === "aborted") return;
    const found = error === null ? "alive" : error.kind === "not_found" ? "gone" : "unknown";
    // The spec does not define the response for an unknown node, so it may be another 4xx, which takes no time.
    failures = error === null || isRequestRejected(error) ? 0 : failures + 1;
    inventory.recordLookup(id, found, deps.clock.monotonic());
    if (error !== null && isPermanent(error)) return;
  }
}

/**
 * Returns whether nodes can be read by id: one was read recently, a listed one can be read now, or none is listed. Null
 * if no call can be sent to find out.
 */
async function canLookUpNodes(deps: ListCollectorDeps, signal: AbortSignal): Promise<boolean | null> {
  const { inventory } = deps.collected;
  const last = inventory.lastDetailAt();
  if (last !== null && deps.clock.monotonic() - last <= DETAIL_MS_MAX) return true;
  const id = inventory.anyListed();
  if (id === null) return true;
  const { wasSent, error } = await lookUp(deps, id, signal);
  if (!wasSent || error?.kind === "aborted") return null;
  if (error?.kind === "not_found") inventory.recordNotFound(id);
  return error === null;
}

/** Reads a node by id. A call that was not sent, for example because of an earlier 429, says nothing about the node. */
async function lookUp({ client, clock, collected }: ListCollectorDeps, id: NodeId, signal: AbortSignal) {
  const { inventory, reporters } = collected;
  const readDeps = { client, clock, inventory, reporter: reporters.nodes };
  let wasSent = false;
  const error = await readNodeDetail(readDeps, { id, lane: "lookup" }, signal, () => {
    wasSent = true;
  });
  return { wasSent, error };
}

/** Reads the session list into the totals (spec, section 4.6). */
export async function collectSessions(deps: ListCollectorDeps, signal: AbortSignal): Promise<RunOutcome> {
  const { sessions, sessionWalks } = deps.collected;
  const beganAt = deps.clock.monotonic();
  const serviceNow = deps.client.serviceTime(beganAt) ?? deps.clock.now();
  sessions.beginWalk(serviceNow);
  sessionWalks.begin(serviceNow, beganAt);
  const fold = (record: unknown, at: MonotonicMs, onProblem: OnProblem): boolean => {
    const session = decodeSessionRecord(record, onProblem);
    // An unreadable record still accounts for one record of the total.
    if (session === null) {
      sessions.addUnreadable();
      return true;
    }
    const isNew = sessions.add(session);
    if (isNew) sessionWalks.recordShown(session.startedAtMs, at);
    return isNew;
  };
  const walked = await readList("sessions", deps, fold, signal);
  if (!walked.ok) {
    sessionWalks.cut();
    await runInSlices(sessions.endWalk("failed", deps.clock.monotonic()), deps.clock);
    return runOutcomeOf(walked, false, 0);
  }
  const { end, error, observedFrom } = walked.value;
  const uncounted = Math.max(0, missingRecords(walked.value));
  if (end === "cut") sessionWalks.cut();
  const failure = end === "refused" ? "refused" : error === null ? null : "page_failed";
  const isAllShown = end !== "cut" && sessionWalks.end(walked.value, failure, deps.clock.monotonic() - observedFrom);
  const dropped = isAllShown ? sessionWalks.dropped(walked.value.seen, statedSessions(deps.collected)) : 0;
  const missing = Math.max(uncounted, dropped);
  const complete = isAllShown && dropped === 0;
  const walkEnd = end === "cut" ? "cut" : complete ? "complete" : "incomplete";
  await runInSlices(sessions.endWalk(walkEnd, deps.clock.monotonic(), observedFrom), deps.clock);
  deps.metrics.set("proxywarden_session_table_sessions", {}, sessions.size());
  return runOutcomeOf(walked, complete, missing, dropped > 0 ? "" : SESSIONS_ADVICE);
}

/** Returns the active sessions according to statistics that were read since the last walk, or null if there are none. */
function statedSessions({ sessions, stats }: CollectedState): number | null {
  const walkedAt = sessions.view()?.settledAt ?? Number.NEGATIVE_INFINITY;
  return stats !== null && stats.at > walkedAt ? stats.value.activeSessions : null;
}

const PAGE_CALLS = { nodes: listNodesCall, sessions: listSessionsCall };

type ListReadResult = Awaited<ReturnType<typeof walkList>>;

function readList(
  list: "nodes" | "sessions",
  { settings: { limits }, collected, client, clock }: ListCollectorDeps,
  foldRecord: (record: unknown, at: MonotonicMs, onProblem: OnProblem) => boolean,
  signal: AbortSignal,
): Promise<ListReadResult> {
  const category = CATEGORY_OF_COLLECTOR[list];
  // Time between two pages at the rate that the limits allow.
  const spacingMs = limits.categories[category].windowMs / pollingCallsPerWindow(limits, category);
  const inFlightMax = callsInFlightMax(limits);
  const { reportProblem } = collected.reporters[list];
  const behavior = collected.listBehavior[list];
  const { latency, pagesInFlight } = behavior;
  let isFirst = true;
  const walk: ListWalk = {
    behavior,
    inFlight: () => Math.min(pagesInFlight.max(), callsInFlightNeeded(spacingMs, latency.meanMs(), inFlightMax)),
    async read(query, pageSignal) {
      let sentAt: MonotonicMs | null = null;
      const response = await client.get(PAGE_CALLS[list](query), "walk", pageSignal, () => {
        sentAt ??= clock.monotonic();
      });
      if (sentAt !== null) {
        const tookMs = (response.ok ? response.value.receivedAt : clock.monotonic()) - sentAt;
        latency.record(tookMs);
        pagesInFlight.record(tookMs, isFirst);
      }
      isFirst = false;
      if (!response.ok) return response;
      const { json, at } = response.value;
      const page = decodePage(json);
      if (!page.ok) return page;
      const { records, limit, total } = page.value;
      const { length } = records;
      const fresh = records.reduce<number>((sum, record) => sum + (foldRecord(record, at, reportProblem) ? 1 : 0), 0);
      // The promises of the call may be old objects by now. They would keep the records until a major collection.
      records.length = 0;
      return ok({ at, total, limit, length, fresh });
    },
  };
  return walkList(walk, signal);
}

function runOutcomeOf(walked: ListReadResult, complete: boolean, missing: number, advice = ""): RunOutcome {
  if (!walked.ok) return { complete: false, shownShare: 0, error: walked.error };
  const { error, difference, end, seen, total } = walked.value;
  const shown = shownShare(walked.value, missing);
  const isRefused = error !== null && end === "refused";
  if (!isRefused && (error !== null || complete))
    return { complete, shownShare: shown, error, totalDifference: difference };
  const message = isRefused
    ? `the service shows only the first ${seen} of the ${total} records that it counts: ${error.message}`
    : `the list shows ${seen} records and counts ${total}; ${missing} are missing or not explained${advice}`;
  return { complete, shownShare: shown, error: { kind: "incomplete", message } };
}
