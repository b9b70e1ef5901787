import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { type ApiLimits, checkLimits, createApiLimits } from "../../src/simulator/http/rate-limits.ts";
import { type Cell, PLAN_VARIANTS, pollingBudgetOf, REQUESTED_INTERVALS } from "./cell.ts";
import { createDetector, type Detector } from "./detection.ts";
import { createListing, type Listing } from "./listing.ts";
import { ageAt, ageMoments, type Result, toResult } from "./result.ts";
import { type Script, START_MS } from "./script.ts";

/** Time from a request to its answer. */
export const LATENCY_MS = 50;
/** Concurrent calls of the naive poller, as many as the minimum of proxywarden's concurrent detail reads. */
const WORKERS = 4;

/** A call of a poller: a page of the list, from 0, or the detail of a node. */
type Call = { readonly page: number } | { readonly node: number };

/** Sends calls to the limiters of the simulated service. The script determines the answers. */
interface Poller {
  /** Sends a call at `at`. Returns the time to wait before sending it again, or 0 if it was admitted. */
  send(call: Call, at: EpochMs): number;
  readonly listing: Listing;
  /** Advances time to `at` and records the ages of details on the way. */
  advanceTo(at: EpochMs): void;
  result(): Result;
}

function startPoller(cell: Cell, script: Script, apiLimits: ApiLimits): Poller {
  const listing = createListing(cell, script);
  const detector: Detector = createDetector(script, cell.nodes, listing);
  const { leadMs, endMs } = script.timetable;
  const moments = [...ageMoments(START_MS + leadMs, START_MS + endMs)];
  const ages: number[] = [];
  let calls = 0;
  let rejected = 0;
  return {
    listing,
    send(call, at) {
      const servedAt = Math.floor(at + LATENCY_MS / 2);
      const { refusedBy, verdict } = checkLimits(apiLimits, "key", "node_management", 1, servedAt);
      if (refusedBy !== null) {
        rejected++;
        return verdict.retryAfterSeconds * SECOND_MS;
      }
      calls++;
      if ("page" in call) detector.recordPage(call.page, servedAt, at + LATENCY_MS);
      else if (script.isReadable(call.node)) detector.recordDetail(call.node, servedAt, at + LATENCY_MS, true);
      return 0;
    },
    advanceTo(at) {
      const detailedAt = (index: number) => detector.detailedAt[index]!;
      while (moments.length > 0 && moments[0]! <= at) ages.push(ageAt(script, detailedAt, moments.shift()!));
    },
    result: () =>
      toResult({
        latencies: detector.latencies(),
        calls,
        rejected,
        spanMs: endMs,
        callsPerMonth: PLAN_VARIANTS[cell.plan].limits.plan.callsPerMonth,
        ages,
        inventory: null,
      }),
  };
}

/**
 * Walks the list every minute and reads details round robin as fast as the service allows. A rejected call waits for
 * Retry-After and is sent again. The month is not enforced; how long it would last is computed from the number of calls.
 */
export function runNaive(cell: Cell, script: Script): Result {
  const { service } = script.scenario;
  const { contract } = PLAN_VARIANTS[cell.plan];
  const withoutMonth = { ...contract, plan: { ...("plan" in contract ? contract.plan : {}), callsPerMonth: Infinity } };
  const poller = startPoller(cell, script, createApiLimits(service, withoutMonth));
  const endAt = START_MS + script.timetable.endMs;
  const { listing } = poller;
  const workers: { at: EpochMs; rejectedCall: Call | null }[] = Array.from({ length: WORKERS }, () => ({
    at: START_MS,
    rejectedCall: null,
  }));
  let walkAt = START_MS;
  let page = 0;
  let node = -1;
  const nextCall = (at: EpochMs): Call => {
    const isWalked = page >= listing.pages(at);
    if (isWalked && at >= walkAt + REQUESTED_INTERVALS.listMs) {
      walkAt += REQUESTED_INTERVALS.listMs * Math.floor((at - walkAt) / REQUESTED_INTERVALS.listMs);
      page = 0;
    } else if (isWalked) {
      node = listing.next(node, at);
      return { node };
    }
    return { page: page++ };
  };
  for (;;) {
    const worker = workers.reduce((first, each) => (each.at < first.at ? each : first));
    if (worker.at >= endAt) return poller.result();
    poller.advanceTo(worker.at);
    const call = worker.rejectedCall ?? nextCall(worker.at);
    const wait = poller.send(call, worker.at);
    worker.rejectedCall = wait > 0 ? call : null;
    worker.at += LATENCY_MS + wait;
  }
}

/** Respects the reserve and the month, spaces list and detail reads evenly, and reads the nodes round robin. */
export function runEven(cell: Cell, script: Script): Result {
  const budget = pollingBudgetOf(cell);
  const poller = startPoller(cell, script, createApiLimits(script.scenario.service, PLAN_VARIANTS[cell.plan].contract));
  const endAt = START_MS + script.timetable.endMs;
  const pageEveryMs = budget.evenWalkMs / budget.pages;
  const detailEveryMs = MINUTE_MS / budget.evenDetailRate;
  let [pagesRead, nodesRead] = [0, 0];
  let [page, node] = [0, -1];
  for (;;) {
    const pageAt = START_MS + pagesRead * pageEveryMs;
    const nodeAt = START_MS + (nodesRead + 0.5) * detailEveryMs;
    const at = Math.min(pageAt, nodeAt);
    if (at >= endAt) return poller.result();
    poller.advanceTo(at);
    if (pageAt <= nodeAt) {
      pagesRead++;
      poller.send({ page }, at);
      page = page + 1 < poller.listing.pages(at) ? page + 1 : 0;
    } else {
      nodesRead++;
      node = poller.listing.next(node, at);
      poller.send({ node }, at);
    }
  }
}
