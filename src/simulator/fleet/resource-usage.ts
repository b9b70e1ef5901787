import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { hashUnit, type Uint32 } from "../hash.ts";
import type { FailureMode } from "./failures.ts";
import { lastHeartbeat, type SimulatedNode } from "./node.ts";

/** A node's usage of CPU, memory and disk, 0 to 1. */
interface ResourceUsage {
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
}

/** A resource of {@link ResourceUsage}. */
export type Resource = "cpu" | "memory" | "disk";

/**
 * A load on one resource of an otherwise healthy node. Only the node's detail shows it, because sessions are not
 * affected.
 */
export interface ResourceLoad {
  readonly resource: Resource;
  /** Start of the rise, which may be in the past. */
  readonly since: EpochMs;
  /** Duration of the linear rise from the healthy usage to `level`, or 0 for a jump. */
  readonly overMs: DurationMs;
  /** 0 to 1. */
  readonly level: number;
  /** End of the load; Infinity if it never ends. */
  readonly until: EpochMs;
}

/** Time in which each failure raises the usage of its resource to the maximum. */
const FAILURE_GROWTH = {
  hot: { ms: 2 * MINUTE_MS, max: 0.985 },
  leak: { ms: 20 * MINUTE_MS, max: 0.975 },
  full: { ms: 40 * MINUTE_MS, max: 0.995 },
} as const satisfies Partial<Record<FailureMode, { ms: DurationMs; max: number }>>;

/** The failure mode that exhausts each resource. */
const FAILURE_MODE_BY_RESOURCE = { cpu: "hot", memory: "leak", disk: "full" } as const satisfies Record<
  Resource,
  FailureMode
>;

/** Growth of memory usage with uptime, and of disk usage between two cleanups, on a healthy node. */
const MEMORY_GROWTH = 0.15;
const MEMORY_GROWTH_MS: DurationMs = 10 * DAY_MS;
const DISK_GROWTH = 0.25;
const DISK_CLEANED_MS: DurationMs = 7 * DAY_MS;

const FACT_KEYS = { memory: 0x101, disk: 0x102, cpu: 0x103, cleaned: 0x104 } as const;

/**
 * Returns the usage in the node's last report by `at`. `load` is the share of the node's capacity that its sessions
 * use. The usage is computed from the node and the time without stored state, so it costs nothing until it is read.
 */
export function resourceUsage(seed: Uint32, node: SimulatedNode, load: number, at: EpochMs): ResourceUsage {
  const reported = lastHeartbeat(node, at);
  const own = (fact: number): number => hashUnit(seed ^ fact, node.index);
  const jitter = hashUnit(seed ^ FACT_KEYS.cpu, node.index, Math.floor(reported / MINUTE_MS)) - 0.5;
  const upMs = Math.max(0, reported - node.bootAt);
  const sinceCleaned = (reported + own(FACT_KEYS.cleaned) * DISK_CLEANED_MS) % DISK_CLEANED_MS;
  return {
    cpu: resourceLevel("cpu", node, reported, 0.05 + 0.55 * load + 0.08 * jitter),
    memory: resourceLevel(
      "memory",
      node,
      reported,
      0.22 + 0.12 * own(FACT_KEYS.memory) + 0.22 * load + MEMORY_GROWTH * (1 - Math.exp(-upMs / MEMORY_GROWTH_MS)),
    ),
    disk: resourceLevel(
      "disk",
      node,
      reported,
      0.2 + 0.3 * own(FACT_KEYS.disk) + DISK_GROWTH * (sinceCleaned / DISK_CLEANED_MS),
    ),
  };
}

/** Applies the load and the failure of the node to the healthy usage of a resource. */
function resourceLevel(resource: Resource, node: SimulatedNode, at: EpochMs, healthy: number): number {
  const level = loadedUsage(node.load, resource, at, Math.min(0.95, Math.max(0.01, healthy)));
  if (node.failureMode !== FAILURE_MODE_BY_RESOURCE[resource]) return level;
  const { ms, max } = FAILURE_GROWTH[FAILURE_MODE_BY_RESOURCE[resource]];
  return level + (max - level) * Math.min(1, Math.max(0, at - node.failingSince) / ms);
}

/** Returns the usage of a resource under a load, as reported at `at`. */
function loadedUsage(load: ResourceLoad | null, resource: Resource, at: EpochMs, healthy: number): number {
  if (load === null || load.resource !== resource || at < load.since || at >= load.until) return healthy;
  const risen = load.overMs === 0 ? 1 : Math.min(1, (at - load.since) / load.overMs);
  return healthy + (load.level - healthy) * risen;
}
