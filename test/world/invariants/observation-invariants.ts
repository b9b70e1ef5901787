import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { TransportResponse } from "../../../src/model/ports.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import { BASELINE_FACT } from "../../../src/remediation/evaluation/inventory-trust.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** What the answers showed about the service's clock, as offsets from the monotonic clock of the machine. */
export interface ServiceClockModel {
  /** Forgets what the previous process received. */
  startProcess(): void;
  recordAnswer(response: TransportResponse, sentAt: MonotonicMs, receivedAt: MonotonicMs): void;
  /** Returns why the daemon's offset is wrong, or null if it is not. */
  problemOf(offset: number): string | null;
}

interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** Differences that the daemon may ignore. */
const TOLERANCE_MS = 5 * SECOND_MS;
/** After this many answers in a row that agree, the daemon must have followed. */
const ANSWERS_MAX = 6;

/** Once the daemon has known this share of the nodes, it must not know less than half of them. */
const FLEET_SHARE_KNOWN = 0.9;
const FLEET_SHARE_MIN = 0.5;

/** Checks, after a walk of the nodes, that the daemon has not dropped nodes that may still exist. */
export function checkWalk({ ids, count, lastWalk }: Fleet, parts: SimulationParts): void {
  const { complete, seenNodes } = lastWalk!;
  parts.regionOutages.update();
  if (complete) {
    parts.acceptedNodes = Math.max(parts.acceptedNodes, seenNodes);
    // With a new journal, the first walk counts by itself.
    const confirmed = parts.confirmedNodes === 0 ? seenNodes : Math.min(seenNodes, parts.lastWalkNodes);
    parts.confirmedNodes = Math.max(parts.confirmedNodes, confirmed);
    parts.lastWalkNodes = seenNodes;
  }
  const walks = JSON.parse(parts.recordedState.facts.get(BASELINE_FACT) ?? "[]") as readonly [number, number][];
  const baseline = Math.max(0, ...walks.map(([, walkNodes]) => walkNodes));
  if (baseline > parts.confirmedNodes)
    parts.addViolation("baseline raised by one walk", `${baseline} nodes; two walks showed ${parts.confirmedNodes}`);
  for (const node of parts.observations.endWalk(new Set(ids.filter((id) => id !== ""))))
    parts.addViolation("node dropped too early", `${node} was dropped after one walk without it`);
  const nodes = parts.service.network.fleet.nodes.length;
  if (count >= FLEET_SHARE_KNOWN * nodes) parts.hasKnownFleet = true;
  else if (count < FLEET_SHARE_MIN * nodes && parts.hasKnownFleet)
    parts.addViolation("fleet emptied", `the daemon knows only ${count} of ${nodes} nodes`);
}

/** Checks the daemon's estimate of the service's clock. */
export function checkServiceClock({ process, machine, clock, serviceClock, addViolation }: SimulationParts): void {
  // Answers that arrive while the machine is suspended reach the daemon once it is resumed.
  if (machine.isSuspended() || clock.monotonic() - machine.resumedAt() < MINUTE_MS) return;
  const serviceNow = process?.isAlive() === true ? process.serviceTime(process.monotonic()) : null;
  const problem = serviceNow === null ? null : serviceClock.problemOf(serviceNow - machine.monotonic());
  if (problem !== null) addViolation("wrong service clock", problem);
}

/** Creates a model without answers. */
export function createServiceClockModel(): ServiceClockModel {
  /** The last answers, oldest first, and the offsets that the first answer or two in a row have shown. */
  let last: Bounds[] = [];
  let shown: Bounds[] = [];
  return {
    startProcess() {
      last = [];
      shown = [];
    },
    recordAnswer({ status, headers }, sentAt, receivedAt) {
      const isService = status < 300 || headers["x-ratelimit-limit"] !== undefined;
      if (!isService || headers.date === undefined) return;
      const date = Date.parse(headers.date);
      const bounds = { low: date - receivedAt, high: date + SECOND_MS - sentAt };
      // Answers to requests that were in flight together may alternate while the clock is set.
      if (last.length === 0 || last.slice(-ANSWERS_MAX).some((each) => isNear(each, bounds))) shown.push(bounds);
      last = [...last.slice(1 - 2 * ANSWERS_MAX), bounds];
      shown = shown.slice(-100);
    },
    problemOf(offset) {
      const own = { low: offset, high: offset };
      if (shown.length > 0 && !shown.some((each) => isNear(each, own))) return "only one answer showed it";
      const latest = last.slice(-ANSWERS_MAX);
      const agree = latest.length === ANSWERS_MAX && latest.every((each) => isNear(each, latest[0]!));
      return agree && !isNear(latest.at(-1)!, own) ? `the last ${ANSWERS_MAX} answers showed another` : null;
    },
  };
}

const isNear = (one: Bounds, other: Bounds): boolean =>
  Math.max(one.low, other.low) - Math.min(one.high, other.high) <= TOLERANCE_MS;
