import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { createDetailFailures, type DetailFailures } from "../scheduling/detail-failures.ts";
import { callsInFlight, createMeanLatency } from "../rate-limit/concurrency.ts";
import type { Lane } from "../rate-limit/limits.ts";
import type { CollectorPlan } from "../scheduling/planner.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { NodeId } from "../model/node.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { ServiceClient } from "../api-client/client.ts";
import { readNode } from "../api-client/endpoints.ts";
import type { ServiceError } from "../api-client/errors.ts";
import { type Remark, readNodeDetail } from "../api-client/decoding/records.ts";
import { type Account, SAY_AGAIN_MS } from "./collector-health.ts";
import type { DetailTurn, Inventory } from "../inventory/inventory.ts";
import { nap } from "./schedule.ts";

/** What detail reads stand on. */
export interface DetailParts {
  readonly client: ServiceClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WardenMetrics;
  readonly account: Account;
  readonly inventory: Inventory;
  /** Most reads under way at once. */
  readonly inFlightMax: number;
  /** The plan of details in force; null: none are read. */
  readonly plan: () => CollectorPlan | null;
  /** Told after each read. */
  readonly onRead: () => void;
}

/** With nothing to read, or no plan, it is looked again after this. */
const IDLE_MS: DurationMs = SECOND_MS;
/** While there are nodes never tried and no limit binds, reads come this much faster than the wish asks for. */
const CATCH_UP = 3;
/** Reads that were missed for up to this long are made up for, at {@link MISSED_PACE} times the planned pace. */
const MISSED_MS_MAX: DurationMs = MINUTE_MS;
const MISSED_PACE = 2;

/** Failures that say nothing about the node that was read. */
const failuresOfService: ReadonlySet<ServiceError["kind"]> = new Set([
  "unreachable",
  "unauthorized",
  "forbidden",
  "rate_limited",
  "redirected",
  "budget",
]);

/** A detail that could not be read. */
interface FailedRead {
  readonly id: NodeId;
  readonly error: ServiceError;
}

/**
 * Reads details, earliest deadline first, evenly spread over the planned round, until `signal` aborts. Where no limit
 * binds, suspects are read beside the round, and where one does, in place of a part of it. A node that fails while
 * others can be read is read less often; all reads slow down only where the service itself fails.
 */
export async function readDetails(parts: DetailParts, signal: AbortSignal): Promise<void> {
  const { clock, inventory } = parts;
  const failures = createDetailFailures();
  const spread = createSpread(clock.monotonic());
  const reads = createReads(parts, failures, signal);
  while (!signal.aborted) {
    // Asked for anew at each look: the plan and the fleet move.
    const planned = parts.plan();
    if (planned === null || inventory.count() === 0) {
      await nap(clock, IDLE_MS, signal);
      continue;
    }
    const isProbe = failures.isServiceSuspected();
    const spacing = failures.spacing(spacingOf(planned, inventory));
    // Where no limit binds, a suspect need not wait for the place of another read.
    const isFree = planned.boundBy === null && !isProbe;
    const suspectAt = isFree ? inventory.suspectAt() : Number.POSITIVE_INFINITY;
    const wait = Math.min(spread.nextAt(spacing), suspectAt) - clock.monotonic();
    if (wait > 0) {
      await nap(clock, wait, signal);
      continue;
    }
    const inFlight = isProbe ? 1 : callsInFlight(spacing, reads.latencyMs(), parts.inFlightMax);
    if (reads.underWay() >= inFlight) {
      await reads.nextEnd();
      continue;
    }
    const now = clock.monotonic();
    const turn = isProbe ? inventory.takeProbe(now) : inventory.takeDetail(now, planned.intervalMs);
    const isBeside = isFree && turn !== null && turn.cause !== null;
    if (!isBeside) spread.start(spacing, now);
    if (turn !== null) reads.start(turn, isProbe);
  }
  await reads.allEnded();
  parts.metrics.set("proxywarden_details_failing_nodes", {}, Number.NaN);
}

function spacingOf(planned: CollectorPlan, inventory: Inventory): DurationMs {
  const spacing = planned.intervalMs / inventory.count();
  return inventory.hasUntried() && planned.boundBy === null ? spacing / CATCH_UP : spacing;
}

/** Spreads reads evenly, and makes up for missed ones without a burst. */
function createSpread(now: MonotonicMs) {
  let due = now;
  let startedAt = Number.NEGATIVE_INFINITY;
  return {
    nextAt: (spacing: DurationMs): MonotonicMs => Math.max(due + spacing, startedAt + spacing / MISSED_PACE),
    start(spacing: DurationMs, at: MonotonicMs): void {
      due = Math.max(due + spacing, at - Math.max(spacing, MISSED_MS_MAX));
      startedAt = at;
    },
  };
}

/** Reads under way. What they bring goes to the inventory, the account, and what is known of failures and latency. */
function createReads(parts: DetailParts, failures: DetailFailures, signal: AbortSignal) {
  const { clock, account, inventory } = parts;
  const underWay = new Map<NodeId, Promise<void>>();
  const latency = createMeanLatency();
  const report = createFailingReport(parts);
  let onEnd = () => {};

  async function read(turn: DetailTurn, isProbe: boolean): Promise<void> {
    const seen: { sentAt: MonotonicMs | null; failure: FailedRead | null } = { sentAt: null, failure: null };
    const onSending = () => {
      seen.sentAt ??= clock.monotonic();
    };
    const succeeded = await account.run(async () => {
      const lane = turn.cause === null ? "detail" : "suspect";
      const error = await collectDetail(parts, { id: turn.id, lane }, signal, onSending);
      if (error !== null) seen.failure = { id: turn.id, error };
      const isMissing = error?.kind === "not_found";
      const isOfNode = error !== null && (isMissing || (!isProbe && !failuresOfService.has(error.kind)));
      return { complete: inventory.isDetailed(), error, isOfNode };
    });
    if (signal.aborted) return;
    if (seen.sentAt !== null) latency.note(clock.monotonic() - seen.sentAt);
    if (succeeded) for (const id of failures.succeeded(turn.id)) inventory.detailFailed(id);
    else if (seen.failure?.error.kind === "not_found") inventory.detailFailed(turn.id);
    else if (isProbe) failures.probeFailed();
    else failures.failed(turn.id, seen.failure !== null && !failuresOfService.has(seen.failure.error.kind));
    report(seen.failure);
    parts.onRead();
  }

  return {
    underWay: () => underWay.size,
    /** Mean time from sending a read to its end, its retries included. */
    latencyMs: latency.ms,
    start(turn: DetailTurn, isProbe: boolean): void {
      if (underWay.has(turn.id)) return;
      const ended = read(turn, isProbe).then(() => {
        underWay.delete(turn.id);
        onEnd();
      });
      underWay.set(turn.id, ended);
    },
    nextEnd: () =>
      new Promise<void>((resolve) => {
        onEnd = resolve;
      }),
    allEnded: () => Promise.all(underWay.values()),
  };
}

/**
 * Shows how many nodes have details that can't be read: in the gauge, and in the log where they begin, have doubled, and
 * end.
 */
function createFailingReport({ clock, inventory, log, metrics }: DetailParts) {
  let logged = 0;
  let loggedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  return (failed: FailedRead | null): void => {
    const nodes = inventory.failingDetails();
    metrics.set("proxywarden_details_failing_nodes", {}, nodes);
    if (nodes === 0 && logged > 0) {
      log.info({ collector: "details" }, "no node's details fail any more");
      logged = 0;
    }
    const isGrown = nodes > 0 && nodes >= 2 * logged;
    if (failed === null || !isGrown || clock.monotonic() - loggedAt < SAY_AGAIN_MS) return;
    const { id, error } = failed;
    log.warn(
      { collector: "details", nodes, node: id, reason: error.kind, problem: error.message },
      "details of some nodes can't be read",
    );
    logged = nodes;
    loggedAt = clock.monotonic();
  };
}

/** Reads one node by its id into the inventory (spec, section 4.2); returns why that failed, or null. */
export async function collectDetail(
  {
    client,
    clock,
    account,
    metrics,
    inventory,
  }: Pick<DetailParts, "client" | "clock" | "account" | "metrics" | "inventory">,
  { id, lane }: { readonly id: NodeId; readonly lane: Lane },
  signal: AbortSignal,
  onSending?: () => void,
): Promise<ServiceError | null> {
  const answer = await client.get(readNode(id), lane, signal, onSending);
  if (!answer.ok) return answer.error;
  const remarks: Remark[] = [];
  const detail = readNodeDetail(answer.value.json, (remark) => void remarks.push(remark));
  if (detail === null) {
    // The failure is logged, with all other nodes' that fail: its remarks need no line of their own.
    for (const { reason } of remarks)
      metrics.inc("proxywarden_records_rejected_total", { collector: "details", reason });
    return wrongShape(`the detail of ${JSON.stringify(id)} can't be read: ${remarks[0]?.detail}`);
  }
  for (const remark of remarks) account.remark(remark);
  if (detail.id !== id) return wrongShape(`the detail of ${JSON.stringify(id)} is of ${JSON.stringify(detail.id)}`);
  if (inventory.detail(detail, answer.value.at, clock.now()) === "contradicts") {
    account.remark({
      reason: "usage_out_of_scale",
      id,
      detail: "a usage contradicts service.usage_scale: all usage is unknown until the scale is corrected",
    });
  }
  return null;
}

const wrongShape = (message: string): ServiceError => ({ kind: "wrong_shape", message });
