import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { hashUnit, type Uint32 } from "../hash.ts";
import type { FailureMode } from "./failure-modes.ts";
import { lastHeartbeat, type SimulatedNode } from "./node.ts";
import { loadedUsage, type Resource } from "./resource-load.ts";

/** How full a node's processor, memory and disk are, 0 to 1. */
export interface ResourceUsage {
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
}

/** How long each ailment takes to bring what it fills to the brim, and how high that is. */
const FAILURE_GROWTH = {
  hot: { ms: 2 * MINUTE_MS, brim: 0.985 },
  leak: { ms: 20 * MINUTE_MS, brim: 0.975 },
  full: { ms: 40 * MINUTE_MS, brim: 0.995 },
} as const satisfies Partial<Record<FailureMode, { ms: DurationMs; brim: number }>>;

/** The ailment that fills each resource. */
const FAILURE_MODE_BY_RESOURCE = { cpu: "hot", memory: "leak", disk: "full" } as const satisfies Record<
  Resource,
  FailureMode
>;

/**
 * Healthy memory rises with the age of processes towards this much more; healthy disks fill up to it between cleanings.
 */
const MEMORY_GROWTH = 0.15;
const MEMORY_GROWTH_MS: DurationMs = 10 * DAY_MS;
const DISK_GROWTH = 0.25;
const DISK_CLEANED_MS: DurationMs = 7 * DAY_MS;

const FACT_KEYS = { memory: 0x101, disk: 0x102, cpu: 0x103, cleaned: 0x104 } as const;

/**
 * What the node reported last, by `at`. `load` is the share of its capacity that its sessions take. A function of the
 * node and the time alone, so nothing is kept, and a fleet of any size wears at no cost until it is looked at.
 */
export function resourceUsage(seed: Uint32, node: SimulatedNode, load: number, at: EpochMs): ResourceUsage {
  const seen = lastHeartbeat(node, at);
  const own = (fact: number): number => hashUnit(seed ^ fact, node.index);
  const jitter = hashUnit(seed ^ FACT_KEYS.cpu, node.index, Math.floor(seen / MINUTE_MS)) - 0.5;
  const upMs = Math.max(0, seen - node.bootAt);
  const sinceCleaned = (seen + own(FACT_KEYS.cleaned) * DISK_CLEANED_MS) % DISK_CLEANED_MS;
  return {
    cpu: resourceLevel("cpu", node, seen, 0.05 + 0.55 * load + 0.08 * jitter),
    memory: resourceLevel(
      "memory",
      node,
      seen,
      0.22 + 0.12 * own(FACT_KEYS.memory) + 0.22 * load + MEMORY_GROWTH * (1 - Math.exp(-upMs / MEMORY_GROWTH_MS)),
    ),
    disk: resourceLevel(
      "disk",
      node,
      seen,
      0.2 + 0.3 * own(FACT_KEYS.disk) + DISK_GROWTH * (sinceCleaned / DISK_CLEANED_MS),
    ),
  };
}

/** A healthy level, or what a strain or the ailment has made of it. */
function resourceLevel(resource: Resource, node: SimulatedNode, at: EpochMs, healthy: number): number {
  const level = loadedUsage(node.load, resource, at, Math.min(0.95, Math.max(0.01, healthy)));
  if (node.failureMode !== FAILURE_MODE_BY_RESOURCE[resource]) return level;
  const { ms, brim } = FAILURE_GROWTH[FAILURE_MODE_BY_RESOURCE[resource]];
  return level + (brim - level) * Math.min(1, Math.max(0, at - node.failingSince) / ms);
}
