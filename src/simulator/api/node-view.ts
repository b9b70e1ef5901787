import { HOUR_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { lastHeartbeat, type SimulatedNode } from "../fleet/node.ts";
import { resourceUsage } from "../fleet/resource-usage.ts";
import type { World } from "../network.ts";
import { countedBytes, gigabytes } from "../sessions/byte-counter.ts";
import { BYTES_PER_MS_MEAN } from "../sessions/demand.ts";
import { type ServiceBackend, serviceTimestamp } from "./endpoint-context.ts";

/** Mean size of a node, as `node.ts` deals them. */
const SIZE_MEAN = 2;
/** Sessions at which a node's processor is fully taken, as a multiple of its fair share of all. */
const HEADROOM = 2.2;
const CAPACITY_MIN = 4;

/** A node in the list form of the spec (section 2.1). */
export interface ListedNode {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly country: string;
  readonly region: string;
  readonly ip_address: string;
  readonly version: string;
  readonly last_seen: string;
  readonly uptime_hours: number;
  readonly active_sessions: number;
  readonly bandwidth_gb: number;
}

/** A node in the detail form. Usage is in the scale that the service was told to have. */
export interface DetailedNode extends ListedNode {
  readonly cpu_usage: number;
  readonly memory_usage: number;
  readonly disk_usage: number;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The last report of a node at `at` that the service knows: none after `seenUntil`. */
export const reportedAt = (node: SimulatedNode, at: EpochMs, seenUntil: EpochMs): EpochMs =>
  Math.min(lastHeartbeat(node, at), seenUntil);

/** Whole hours that the node has been up, by its last report. */
export const uptimeHours = (node: SimulatedNode, at: EpochMs): number =>
  Math.max(0, Math.floor((lastHeartbeat(node, at) - node.bootAt) / HOUR_MS));

/** All that the node ever carried: what it had before the start is what a node of its size and age would have. */
export function bandwidthOf(world: World, node: SimulatedNode, at: EpochMs): number {
  const { traffic, startMs } = world;
  const before = Math.max(0, startMs - node.createdAt) * BYTES_PER_MS_MEAN * fairShare(world, node);
  return gigabytes(before + countedBytes(traffic.population.nodes[node.index]!, at - startMs));
}

/** The list form of a node at `at`. No report after `seenUntil` is known to the service. */
export function listedNode(service: ServiceBackend, node: SimulatedNode, at: EpochMs, seenUntil: EpochMs): ListedNode {
  const { active } = service.world.traffic.population.nodes[node.index]!;
  return {
    id: node.id,
    name: node.name,
    status: node.status,
    country: node.country,
    region: node.region,
    ip_address: node.ipAddress,
    version: node.version,
    last_seen: serviceTimestamp(service, reportedAt(node, at, seenUntil)),
    uptime_hours: uptimeHours(node, at),
    active_sessions: active,
    bandwidth_gb: bandwidthOf(service.world, node, at),
  };
}

/** The detail form of a node at `at`. */
export function detailedNode(
  service: ServiceBackend,
  node: SimulatedNode,
  at: EpochMs,
  seenUntil: EpochMs,
): DetailedNode {
  const { world, options } = service;
  const { active } = world.traffic.population.nodes[node.index]!;
  const capacity = Math.max(CAPACITY_MIN, fairShare(world, node) * HEADROOM);
  const { cpu, memory, disk } = resourceUsage(world.seed, node, Math.min(1, active / capacity), at);
  const scaled = (ratio: number): number =>
    options.usageScale === "percent" ? rounded(ratio * 100, 2) : rounded(ratio, 4);
  return {
    ...listedNode(service, node, at, seenUntil),
    cpu_usage: scaled(cpu),
    memory_usage: scaled(memory),
    disk_usage: scaled(disk),
    created_at: serviceTimestamp(service, node.createdAt),
    updated_at: serviceTimestamp(service, node.changedAt),
  };
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

const fairShare = ({ traffic }: World, node: SimulatedNode): number => traffic.perNode * (node.size / SIZE_MEAN);
