import type { ApiClient } from "../api-client/client.ts";
import type { RecordProblem } from "../api-client/decoding/fields.ts";
import { decodeNodeDetail } from "../api-client/decoding/records.ts";
import { readNodeCall } from "../api-client/endpoints.ts";
import type { ApiError } from "../api-client/errors.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { DetailPick, Inventory } from "../inventory/inventory.ts";
import type { NodeId } from "../model/node.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";
import { callsInFlightMax, callsInFlightNeeded, createMeanLatency } from "../rate-limit/collector-concurrency.ts";
import type { Lane } from "../rate-limit/limits.ts";
import { createDetailFailures, type DetailFailures } from "../scheduling/detail-failures.ts";
import type { CollectorPlan } from "../scheduling/planner.ts";
import { type CollectorReporter, LOG_REPEAT_MS } from "./collector-health.ts";
import type { ListCollectorDeps } from "./list-collectors.ts";
import { sleepStep } from "./schedule.ts";

/** Dependencies of the detail collector. */
interface DetailCollectorDeps extends ListCollectorDeps {
  readonly log: Log;
  /** Returns the current plan of details, or null if none are read. */
  readonly plan: () => CollectorPlan | null;
  /** Called after each read. */
  readonly onRead: () => void;
}

/** Wait between two checks while there is nothing to read, or no plan. */
const IDLE_POLL_MS: DurationMs = SECOND_MS;
/** While nodes are unread and no limit binds, reads are this many times faster than requested. */
const CATCH_UP_FACTOR = 3;
/** A backlog of reads of up to this time is caught up at {@link BACKLOG_PACE_FACTOR} times the planned pace. */
const BACKLOG_MS_MAX: DurationMs = MINUTE_MS;
const BACKLOG_PACE_FACTOR = 2;

/** Failures of the service, not of the node that was read. */
const SERVICE_FAILURES: ReadonlySet<ApiError["kind"]> = new Set([
  "unreachable",
  "unauthorized",
  "forbidden",
  "rate_limited",
  "redirected",
  "budget",
]);

/**
 * Reads details until `signal` aborts, earliest deadline first, evenly spread over the planned round. Suspects are read
 * in addition to the planned reads if no limit binds, and instead of some of them otherwise. A node that fails while
 * others can be read is read less often. All reads slow down only if the service itself fails.
 */
export async function runDetailCollector(deps: DetailCollectorDeps, signal: AbortSignal): Promise<void> {
  const { clock } = deps;
  const { inventory } = deps.collected;
  const inFlightMax = callsInFlightMax(deps.settings.limits);
  const failures = createDetailFailures();
  const pacer = createPacer(clock.monotonic());
  const reads = createReader(deps, failures, signal);
  while (!signal.aborted) {
    // Read in every iteration, because the plan and the fleet change.
    const planned = deps.plan();
    if (planned === null || inventory.count() === 0) {
      await sleepStep(clock, IDLE_POLL_MS, signal);
      continue;
    }
    const isProbe = failures.isServiceSuspected();
    const spacing = failures.probeSpacingMs(spacingOf(planned, inventory));
    // If no limit binds, a suspect is read in addition to the planned reads.
    const isUnpaced = planned.boundBy === null && !isProbe;
    const suspectAt = isUnpaced ? inventory.details.suspectAt() : Number.POSITIVE_INFINITY;
    const wait = Math.min(pacer.nextAt(spacing), suspectAt) - clock.monotonic();
    if (wait > 0) {
      await sleepStep(clock, wait, signal);
      continue;
    }
    const inFlight = isProbe ? 1 : callsInFlightNeeded(spacing, reads.latencyMs(), inFlightMax);
    if (reads.inFlight() >= inFlight) {
      await reads.nextEnd();
      continue;
    }
    const now = clock.monotonic();
    const next = isProbe ? inventory.takeProbe(now) : inventory.takeNextDetail(now, planned.intervalMs);
    const isOffSchedule = isUnpaced && next !== null && next.cause !== null;
    if (!isOffSchedule) pacer.start(spacing, now);
    if (next !== null) reads.start(next, isProbe);
  }
  await reads.allEnded();
  deps.metrics.set("proxywarden_details_failing_nodes", {}, Number.NaN);
}

function spacingOf(planned: CollectorPlan, inventory: Inventory): DurationMs {
  const spacing = planned.intervalMs / inventory.count();
  return inventory.details.hasUnreadNodes() && planned.boundBy === null ? spacing / CATCH_UP_FACTOR : spacing;
}

/** Spaces reads evenly, and catches up on missed ones without a burst. */
function createPacer(now: MonotonicMs) {
  let due = now;
  let startedAt = Number.NEGATIVE_INFINITY;
  return {
    nextAt: (spacing: DurationMs): MonotonicMs => Math.max(due + spacing, startedAt + spacing / BACKLOG_PACE_FACTOR),
    start(spacing: DurationMs, at: MonotonicMs): void {
      due = Math.max(due + spacing, at - Math.max(spacing, BACKLOG_MS_MAX));
      startedAt = at;
    },
  };
}

/** Runs reads concurrently, and records their results, failures and latency. */
function createReader(deps: DetailCollectorDeps, failures: DetailFailures, signal: AbortSignal) {
  const { clock } = deps;
  const { inventory, reporters } = deps.collected;
  const readDeps = { ...deps, inventory, reporter: reporters.details };
  const inFlight = new Map<NodeId, Promise<void>>();
  const latency = createMeanLatency();
  const report = createFailureLog(deps);
  let onEnd = () => {};

  async function read(next: DetailPick, isProbe: boolean): Promise<void> {
    const attempt: { sentAt: MonotonicMs | null; error: ApiError | null } = { sentAt: null, error: null };
    const onSending = () => {
      attempt.sentAt ??= clock.monotonic();
    };
    const succeeded = await reporters.details.run(async () => {
      const lane = next.cause === null ? "detail" : "suspect";
      const error = await readNodeDetail(readDeps, { id: next.id, lane }, signal, onSending);
      attempt.error = error;
      const isMissing = error?.kind === "not_found";
      if (isMissing) inventory.recordNotFound(next.id);
      const isNodeFailure = error !== null && (isMissing || (!isProbe && !SERVICE_FAILURES.has(error.kind)));
      return { complete: inventory.hasDetail(), error, isNodeFailure };
    });
    if (signal.aborted) return;
    if (attempt.sentAt !== null) latency.record(clock.monotonic() - attempt.sentAt);
    if (succeeded) for (const id of failures.recordSuccess(next.id)) inventory.recordDetailFailure(id);
    else if (attempt.error?.kind === "not_found") inventory.recordDetailFailure(next.id);
    else if (isProbe) failures.recordProbeFailure();
    else failures.recordFailure(next.id, attempt.error !== null && !SERVICE_FAILURES.has(attempt.error.kind));
    report(next.id, attempt.error);
    deps.onRead();
  }

  return {
    inFlight: () => inFlight.size,
    /** Mean time of a read, retries included. */
    latencyMs: latency.meanMs,
    start(next: DetailPick, isProbe: boolean): void {
      if (inFlight.has(next.id)) return;
      const finished = read(next, isProbe).then(() => {
        inFlight.delete(next.id);
        onEnd();
      });
      inFlight.set(next.id, finished);
    },
    nextEnd: () =>
      new Promise<void>((resolve) => {
        onEnd = resolve;
      }),
    allEnded: () => Promise.all(inFlight.values()),
  };
}

/**
 * Reports how many nodes have unreadable details, in the gauge and, when the number leaves zero, doubles or returns to
 * zero, in the log.
 */
function createFailureLog({ clock, collected, log, metrics }: DetailCollectorDeps) {
  let loggedNodes = 0;
  let loggedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  return (node: NodeId, error: ApiError | null): void => {
    const nodes = collected.inventory.details.failingNodes();
    metrics.set("proxywarden_details_failing_nodes", {}, nodes);
    if (nodes === 0 && loggedNodes > 0) {
      log.info({ collector: "details" }, "details of all nodes can be read again");
      loggedNodes = 0;
    }
    const hasGrown = nodes > 0 && nodes >= 2 * loggedNodes;
    if (error === null || !hasGrown || clock.monotonic() - loggedAt < LOG_REPEAT_MS) return;
    const { kind: reason, message: problem } = error;
    log.warn({ collector: "details", nodes, node, reason, problem }, "details of some nodes can't be read");
    loggedNodes = nodes;
    loggedAt = clock.monotonic();
  };
}

/** Dependencies of {@link readNodeDetail}. */
interface NodeReadDeps {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly inventory: Inventory;
  /** Counts and logs what is wrong with the detail. */
  readonly reporter: CollectorReporter;
}

/** Reads one node by id into the inventory (spec, section 4.2). Returns the error, or null if it succeeded. */
export async function readNodeDetail(
  { client, clock, reporter, inventory }: NodeReadDeps,
  { id, lane }: { readonly id: NodeId; readonly lane: Lane },
  signal: AbortSignal,
  onSending?: () => void,
): Promise<ApiError | null> {
  const response = await client.get(readNodeCall(id), lane, signal, onSending);
  if (!response.ok) return response.error;
  const problems: RecordProblem[] = [];
  const detail = decodeNodeDetail(response.value.json, (problem) => void problems.push(problem));
  if (detail === null) {
    // The failure log covers this node; its problems are only counted.
    for (const problem of problems) reporter.countProblem(problem);
    return wrongShapeError(`the detail of ${JSON.stringify(id)} can't be read: ${problems[0]?.detail}`);
  }
  for (const problem of problems) reporter.reportProblem(problem);
  if (detail.id !== id)
    return wrongShapeError(`the detail of ${JSON.stringify(id)} has the id ${JSON.stringify(detail.id)}`);
  const { at } = response.value;
  const recorded = inventory.recordDetail(detail, at, clock.now() - (clock.monotonic() - at));
  if (recorded === "outdated") {
    const message = `the detail of ${JSON.stringify(id)} contradicts an earlier response: its status is ${detail.status}, but its last_seen is older`;
    return { kind: "incomplete", message };
  }
  if (recorded === "bad_scale") {
    reporter.reportProblem({
      reason: "usage_out_of_scale",
      id,
      detail: "a usage contradicts service.usage_scale: all usage is unknown until the scale is corrected",
    });
  }
  return null;
}

const wrongShapeError = (message: string): ApiError => ({ kind: "wrong_shape", message });
