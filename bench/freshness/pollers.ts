import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { type ApiLimits, checkLimits, createApiLimits } from "../../src/simulator/http/rate-limits.ts";
import { type Cell, meansOf, TERMS, WISHES } from "./cell.ts";
import { createFinder, type Finder } from "./finding.ts";
import { createListing, type Listing } from "./listing.ts";
import { type Script, START_MS } from "./script.ts";
import { ageAt, ageMoments, type Showing, showingOf } from "./showing.ts";

/** From the sending of a request to its answer. */
export const LATENCY_MS = 50;
/** Calls that the naive poller has under way at once: as many as proxywarden's detail reads. */
const WORKERS = 4;

/** A call of a poller: a page of the list, from 0, or a node. */
type Job = { readonly page: number } | { readonly node: number };

/** Sends calls to the simulated service's own limiters. What an answer shows is what the script says. */
interface Line {
  /** Sends a call at `at`. Returns how long to wait before it is sent again: 0 where it was let in. */
  send(job: Job, at: EpochMs): number;
  readonly listing: Listing;
  /** Lets time pass up to `at`: ages are taken on the way. */
  passTo(at: EpochMs): void;
  showing(): Showing;
}

function openLine(cell: Cell, script: Script, admission: ApiLimits): Line {
  const listing = createListing(cell, script);
  const finder: Finder = createFinder(script, cell.nodes, listing);
  const { leadMs, endMs } = script.timetable;
  const moments = [...ageMoments(START_MS + leadMs, START_MS + endMs)];
  const ages: number[] = [];
  let calls = 0;
  let refused = 0;
  return {
    listing,
    send(job, at) {
      const servedAt = Math.floor(at + LATENCY_MS / 2);
      const { refusedBy, verdict } = checkLimits(admission, "key", "node_management", 1, servedAt);
      if (refusedBy !== null) {
        refused++;
        return verdict.retryAfterSeconds * SECOND_MS;
      }
      calls++;
      if ("page" in job) finder.page(job.page, servedAt, at + LATENCY_MS);
      else if (script.isReadable(job.node)) finder.node(job.node, servedAt, at + LATENCY_MS, true);
      return 0;
    },
    passTo(at) {
      const known = (index: number) => finder.known[index]!;
      while (moments.length > 0 && moments[0]! <= at) ages.push(ageAt(script, known, moments.shift()!));
    },
    showing: () =>
      showingOf({
        latencies: finder.latencies(),
        calls,
        refused,
        spanMs: endMs,
        callsPerMonth: TERMS[cell.terms].limits.plan.callsPerMonth,
        ages,
        inventory: null,
      }),
  };
}

/**
 * Walks the list each minute and reads details round robin, as fast as it is let: a refused call waits for Retry-After
 * and is sent again. The month is not held against it here: how long it would last is reckoned from its calls.
 */
export function runNaive(cell: Cell, script: Script): Showing {
  const { service } = script.scenario;
  const { contract } = TERMS[cell.terms];
  const endless = { ...contract, plan: { ...("plan" in contract ? contract.plan : {}), callsPerMonth: Infinity } };
  const line = openLine(cell, script, createApiLimits(service, endless));
  const endAt = START_MS + script.timetable.endMs;
  const { listing } = line;
  const workers: { at: EpochMs; again: Job | null }[] = Array.from({ length: WORKERS }, () => ({
    at: START_MS,
    again: null,
  }));
  let walkAt = START_MS;
  let page = 0;
  let node = -1;
  const nextJob = (at: EpochMs): Job => {
    const isWalked = page >= listing.pages(at);
    if (isWalked && at >= walkAt + WISHES.listMs) {
      walkAt += WISHES.listMs * Math.floor((at - walkAt) / WISHES.listMs);
      page = 0;
    } else if (isWalked) {
      node = listing.next(node, at);
      return { node };
    }
    return { page: page++ };
  };
  for (;;) {
    const worker = workers.reduce((first, each) => (each.at < first.at ? each : first));
    if (worker.at >= endAt) return line.showing();
    line.passTo(worker.at);
    const job = worker.again ?? nextJob(worker.at);
    const wait = line.send(job, worker.at);
    worker.again = wait > 0 ? job : null;
    worker.at += LATENCY_MS + wait;
  }
}

/** Keeps the reserve and the month, paces lists and details evenly, and takes the nodes in turn. */
export function runEven(cell: Cell, script: Script): Showing {
  const means = meansOf(cell);
  const line = openLine(cell, script, createApiLimits(script.scenario.service, TERMS[cell.terms].contract));
  const endAt = START_MS + script.timetable.endMs;
  const pageEveryMs = means.evenWalkMs / means.pages;
  const detailEveryMs = MINUTE_MS / means.evenDetailRate;
  let [pagesRead, nodesRead] = [0, 0];
  let [page, node] = [0, -1];
  for (;;) {
    const pageAt = START_MS + pagesRead * pageEveryMs;
    const nodeAt = START_MS + (nodesRead + 0.5) * detailEveryMs;
    const at = Math.min(pageAt, nodeAt);
    if (at >= endAt) return line.showing();
    line.passTo(at);
    if (pageAt <= nodeAt) {
      pagesRead++;
      line.send({ page }, at);
      page = page + 1 < line.listing.pages(at) ? page + 1 : 0;
    } else {
      nodesRead++;
      node = line.listing.next(node, at);
      line.send({ node }, at);
    }
  }
}
