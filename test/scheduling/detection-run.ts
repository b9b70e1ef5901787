import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { seededRandom } from "../../src/base/random.ts";
import { type Threshold, USAGES } from "../../src/model/policy/policy.ts";
import { DetailPriority } from "../../src/scheduling/detail-priority.ts";
import type { UsageReading } from "../../src/scheduling/usage-trend.ts";

/** Something goes wrong with a node, which only its detail shows. */
interface NodeFault {
  readonly node: number;
  readonly kind: "creep" | "jump";
  /** Index of what fills up. */
  readonly usage: number;
  readonly from: number;
  readonly fillsInMs: DurationMs;
  /** When it crosses the threshold. */
  readonly crossesAt: number;
  foundAt: number;
}

/** A model fleet whose details are read one by one, as fast as the calls allow. */
export interface DetectionRun {
  readonly nodes: number;
  readonly callsPerMinute: number;
  readonly hours: number;
  readonly faultsPerHour: number;
  /** Time a slow rise takes to reach its end. */
  readonly creepMs: { readonly min: DurationMs; readonly max: DurationMs };
  readonly seed: number;
}

/** Chooses whose detail is read next. */
export interface DetailReader {
  next(now: number, roundMs: DurationMs): number;
  observe(node: number, reading: UsageReading, at: number): void;
}

export const roundRobin = ({ nodes }: DetectionRun): DetailReader => {
  let turn = 0;
  return { next: () => turn++ % nodes, observe: () => {} };
};

export const byPriority = ({ nodes }: DetectionRun): DetailReader => {
  const priority = new DetailPriority();
  priority.setThresholds(lines);
  for (let node = 0; node < nodes; node++) priority.addNode(node);
  return {
    next: (now, roundMs) => priority.takeNext(now, roundMs)!.slot,
    observe: (node, reading, at) => priority.recordRead(node, reading, at),
  };
};

const lines: readonly Threshold[] = USAGES.map((usage) => ({ usage, value: 0.9, side: "above" }));
const LINE = 0.9;
const FULL = 0.99;
const LATENCY_MS = 100;

/** Median time in minutes from the crossing of the threshold to the detection, by kind of fault. */
export function medianDelays(
  run: DetectionRun,
  readerOf: (run: DetectionRun) => DetailReader,
): Readonly<Record<NodeFault["kind"], number>> {
  const random = seededRandom(run.seed);
  const reader = readerOf(run);
  const spacing = MINUTE_MS / run.callsPerMinute;
  const roundMs = run.nodes * spacing;
  // Some disks are always near the threshold. Noise affects the CPU, and the memory a little.
  const healthy = Float32Array.from({ length: run.nodes * USAGES.length }, (_, cell) =>
    cell % 3 === 2 && random() < 0.02 ? 0.86 + 0.03 * random() : 0.2 + 0.4 * random(),
  );
  const faults = faultsOf(run, roundMs, healthy, random);
  const faultByNode = new Map(faults.map((fault) => [fault.node, fault]));
  const endAt = run.hours * HOUR_MS;
  for (let now = 0; now < endAt; now += spacing) {
    const node = reader.next(now, roundMs);
    const at = now + LATENCY_MS;
    const noise = 0.1 * (random() - 0.5);
    const usages = [0, 1, 2].map((usage) => healthy[3 * node + usage]! + noise * [1, 0.2, 0][usage]!);
    const fault = faultByNode.get(node);
    // A detected fault is repaired.
    if (fault !== undefined && at >= fault.from && fault.foundAt > at) {
      const begin = healthy[3 * node + fault.usage]!;
      usages[fault.usage] = begin + (FULL - begin) * Math.min(1, (at - fault.from) / fault.fillsInMs);
      if (at >= fault.crossesAt) fault.foundAt = at;
    }
    reader.observe(node, { cpuUsage: usages[0]!, memoryUsage: usages[1]!, diskUsage: usages[2]! }, at);
  }
  const delays = (kind: NodeFault["kind"]) =>
    faults.filter((fault) => fault.kind === kind).map(({ foundAt, crossesAt }) => (foundAt - crossesAt) / MINUTE_MS);
  return { creep: median(delays("creep")), jump: median(delays("jump")) };
}

/** Creates faults after two healthy rounds, each on a different node, as many of each kind. */
function faultsOf(run: DetectionRun, roundMs: DurationMs, healthy: Float32Array, random: () => number): NodeFault[] {
  const spanMs = run.hours * HOUR_MS - 4 * roundMs - run.creepMs.max;
  const count = Math.floor((run.faultsPerHour * spanMs) / HOUR_MS);
  const faults = new Map<number, NodeFault>();
  while (faults.size < 2 * count) {
    const node = Math.floor(random() * run.nodes);
    const kind = faults.size % 2 === 0 ? "creep" : "jump";
    const usage = Math.floor(3 * random());
    const begin = healthy[3 * node + usage]!;
    if (faults.has(node) || begin > 0.7) continue;
    const from = 2 * roundMs + random() * spanMs;
    const { min, max } = run.creepMs;
    const fillsInMs = kind === "jump" ? 1 : min * (max / min) ** random();
    const crossesAt = from + (fillsInMs * (LINE - begin)) / (FULL - begin);
    faults.set(node, { node, kind, usage, from, fillsInMs, crossesAt, foundAt: Number.POSITIVE_INFINITY });
  }
  return [...faults.values()];
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;
