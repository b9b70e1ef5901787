import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../base/duration.ts";
import type { ServiceOptions } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { lastHeartbeat, type SimulatedNode } from "../fleet/node.ts";
import { resourceUsage } from "../fleet/resource-usage.ts";
import type { Network } from "../network.ts";
import { countedBytes, gigabytes } from "../sessions/byte-counter.ts";
import { BYTES_PER_MS_MEAN } from "../sessions/demand.ts";
import { type ServiceBackend, serviceTimestamp } from "./endpoint-context.ts";

/** Mean size of a node in `node.ts`. */
const SIZE_MEAN = 2;
/** Number of sessions at full CPU usage, as a multiple of the node's fair share. */
const HEADROOM = 2.2;
const CAPACITY_MIN = 4;

/** A node in the detail form. */
export type DetailedNode = ReturnType<typeof detailedNode>;

/** Returns the time of the node's last report by `at` that the service knows. It knows none after `seenUntil`. */
export const reportedAt = (node: SimulatedNode, at: EpochMs, seenUntil: EpochMs): EpochMs =>
  Math.min(lastHeartbeat(node, at), seenUntil);

/** Returns the `last_seen` of a node whose last report was at `at`, rounded down to a multiple of `everyMs` unless it is 0. */
const lastSeenAt = (everyMs: DurationMs, at: EpochMs): EpochMs =>
  everyMs === 0 ? at : Math.floor(at / everyMs) * everyMs;

/** Returns the uptime at the node's last report, in hours. */
const exactUptimeHours = ({ options: { uptimeSince } }: ServiceBackend, node: SimulatedNode, at: EpochMs): number => {
  const since = uptimeSince === "boot" ? node.bootAt : node.createdAt;
  return Math.max(0, (lastHeartbeat(node, at) - since) / HOUR_MS);
};

/** Returns the uptime at the node's last report, in whole hours. */
const uptimeHours = (service: ServiceBackend, node: SimulatedNode, at: EpochMs): number =>
  Math.floor(exactUptimeHours(service, node, at));

/** Returns the node's lifetime traffic in GB. The part before the start is estimated from its size and age. */
function bandwidthOf(network: Network, node: SimulatedNode, at: EpochMs): number {
  const { traffic, startMs } = network;
  const before = Math.max(0, startMs - node.createdAt) * BYTES_PER_MS_MEAN * fairShare(network, node);
  return gigabytes(before + countedBytes(traffic.population.nodes[node.index]!, at - startMs));
}

/** How long a node may be shown as starting after it has resumed responding. */
export const STARTING_MS: DurationMs = MINUTE_MS;

/** Returns the status that the service states for a node. `starting` is not in the API documentation. */
export function statedStatus(
  { options, network }: ServiceBackend,
  { status, aliveSince }: SimulatedNode,
): SimulatedNode["status"] | "starting" {
  if (status === "quarantined") return options.quarantineStatus;
  if (status === "online" && network.now - aliveSince < STARTING_MS) return options.bootedStatus;
  return status === "rebooting" ? options.rebootStatus : status;
}

/** Returns a measured value of a node as the service states it, which depends on whether the node is down. */
function statedValue(service: ServiceBackend, node: SimulatedNode, value: number): number | null {
  const status = statedStatus(service, node);
  const { offlineValues } = service.options;
  if (offlineValues === "last" || (status !== "offline" && status !== "rebooting")) return value;
  return offlineValues === "zero" ? 0 : null;
}

/** Returns the list form (spec, section 2.1) of a node at `at`. The service knows no report after `seenUntil`. */
export function listedNode(service: ServiceBackend, node: SimulatedNode, at: EpochMs, seenUntil: EpochMs) {
  const { active } = service.network.traffic.population.nodes[node.index]!;
  return {
    id: node.id,
    name: node.name,
    status: statedStatus(service, node),
    country: node.country,
    region: node.region,
    ip_address: node.ipAddress,
    version: node.version,
    last_seen: serviceTimestamp(service, lastSeenAt(service.options.lastSeenEveryMs, reportedAt(node, at, seenUntil))),
    uptime_hours: statedValue(service, node, uptimeHours(service, node, at)),
    active_sessions: active,
    bandwidth_gb: bandwidthOf(service.network, node, at),
  };
}

/** Returns the detail form of a node at `at`. Usage is in the scale of the option `usageScale`. */
export function detailedNode(service: ServiceBackend, node: SimulatedNode, at: EpochMs, seenUntil: EpochMs) {
  const { network, options } = service;
  const { active } = network.traffic.population.nodes[node.index]!;
  const capacity = Math.max(CAPACITY_MIN, fairShare(network, node) * HEADROOM);
  const { cpu, memory, disk } = resourceUsage(network.seed, node, Math.min(1, active / capacity), at);
  const scaled = (ratio: number): number | null =>
    statedValue(service, node, options.usageScale === "percent" ? rounded(ratio * 100, 2) : rounded(ratio, 4));
  const isOtherCase = options.detailLocation === "other_case";
  return {
    ...listedNode(service, node, at, seenUntil),
    ...(isOtherCase && { country: node.country.toLowerCase(), region: node.region.toUpperCase() }),
    last_seen: serviceTimestamp(
      service,
      lastSeenAt(options.detailLastSeenEveryMs || options.lastSeenEveryMs, reportedAt(node, at, seenUntil)),
    ),
    uptime_hours: statedValue(
      service,
      node,
      UPTIME_ROUNDING[options.detailUptime](exactUptimeHours(service, node, at)),
    ),
    cpu_usage: scaled(cpu),
    memory_usage: scaled(memory),
    disk_usage: scaled(disk),
    created_at: serviceTimestamp(
      service,
      { creation: node.createdAt, boot: node.bootAt, request: at }[options.createdAt],
    ),
    updated_at: serviceTimestamp(service, node.changedAt),
  };
}

const UPTIME_ROUNDING: Readonly<Record<ServiceOptions["detailUptime"], (hours: number) => number>> = {
  floored: Math.floor,
  rounded: Math.round,
  exact: (hours) => rounded(hours, 2),
};

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

const fairShare = ({ traffic }: Network, node: SimulatedNode): number => traffic.perNode * (node.size / SIZE_MEAN);
