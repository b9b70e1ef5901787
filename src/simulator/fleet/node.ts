import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { NodeStatus } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { hash, type Uint32 } from "../hash.ts";
import type { FailureMode, Remedy } from "./failures.ts";
import { SITE_COUNTRIES, SITES } from "./locations.ts";
import { nodeId, nodeIdentity, siteIndex, VERSIONS, versionIndex } from "./node-identity.ts";
import type { ResourceLoad } from "./resource-usage.ts";

/** Interval between the reports of a running node. */
export const HEARTBEAT_MS: DurationMs = 15 * SECOND_MS;

/** The time of an event that is not scheduled, or of a state that the node is not in. */
export const NEVER: EpochMs = Number.POSITIVE_INFINITY;

/** Relative sizes of machines, which determine the share of sessions a node takes. */
const SIZES = [1, 1, 2, 2, 4] as const;
/** The largest size. */
export const SIZE_MAX = 4;

/** The actual state of a node. Times are on the service's clock without skew; {@link NEVER} if there is none. */
export interface SimulatedNode {
  readonly index: number;
  readonly id: string;
  name: string;
  country: string;
  /** Index into COUNTRIES. */
  countryIndex: number;
  region: string;
  ipAddress: string;
  createdAt: EpochMs;
  readonly size: number;
  /** Offset of the reports within the interval, so that the nodes do not report at the same time. */
  readonly heartbeatPhaseMs: DurationMs;
  version: string;
  status: Exclude<NodeStatus, "unknown">;
  /** When the status last changed. */
  changedAt: EpochMs;
  failureMode: FailureMode;
  remedy: Remedy;
  failingSince: EpochMs;
  /** An injected load on one resource, in addition to any failure, or null if there is none. */
  load: ResourceLoad | null;
  /** Whether the failure keeps the node from responding now. */
  isUnresponsive: boolean;
  /** Whether its region is cut off. */
  isRegionDown: boolean;
  recoverAt: EpochMs;
  /** Start of the next phase of the failure or, for a healthy node, of the next failure. */
  nextPhaseAt: EpochMs;
  rebootUntil: EpochMs;
  rebootForced: boolean;
  quarantineUntil: EpochMs;
  maintenanceUntil: EpochMs;
  maintenanceAt: EpochMs;
  /** Time of the last reported boot. */
  bootAt: EpochMs;
  /** Time of a boot that the node could not report yet. */
  unreportedBootAt: EpochMs;
  /** When the node started responding. */
  aliveSince: EpochMs;
  /** When the node stopped responding. */
  silentSince: EpochMs;
  /** Whether the node is in the fleet. */
  isPresent: boolean;
  /** When a removed node returns. */
  returnAt: EpochMs;
  /** Time of the node's earliest event. */
  nextAt: EpochMs;
  /** Number of random draws for the node so far. */
  drawCount: number;
}

/** Creates a healthy node without scheduled events. If `isNew`, it joins at `at`; otherwise it joined earlier. */
export function createNode(seed: Uint32, index: number, at: EpochMs, isNew = false): SimulatedNode {
  const site = siteIndex(seed, index);
  const location = SITES[site]!;
  const identity = nodeIdentity(seed, index, location);
  const { name, ipAddress } = identity;
  const ageMs = isNew ? 0 : identity.ageMs;
  const own = hash(seed, index, 0x51ce);
  return {
    index,
    id: nodeId(seed, index),
    name,
    country: location.country,
    countryIndex: SITE_COUNTRIES[site]!,
    region: location.region,
    ipAddress,
    createdAt: at - ageMs,
    size: SIZES[own % SIZES.length]!,
    heartbeatPhaseMs: (own >>> 8) % HEARTBEAT_MS,
    version: VERSIONS[versionIndex(seed, index)]!.version,
    status: "online",
    changedAt: at - ageMs,
    failureMode: "none",
    remedy: "time",
    failingSince: NEVER,
    load: null,
    isUnresponsive: false,
    isRegionDown: false,
    recoverAt: NEVER,
    nextPhaseAt: NEVER,
    rebootUntil: NEVER,
    rebootForced: false,
    quarantineUntil: NEVER,
    maintenanceUntil: NEVER,
    maintenanceAt: NEVER,
    bootAt: at - Math.floor(ageMs * ((own >>> 16) / 65_536)),
    unreportedBootAt: NEVER,
    aliveSince: at - ageMs,
    silentSince: NEVER,
    isPresent: true,
    returnAt: NEVER,
    nextAt: NEVER,
    drawCount: 0,
  };
}

/** Makes a node a different machine with the same id, usually in another place, which was created at `at`. */
export function replaceMachine(seed: Uint32, node: SimulatedNode, at: EpochMs): void {
  const machine = createNode(hash(seed, Math.floor(at / SECOND_MS)), node.index, at, true);
  const { name, country, countryIndex, region, ipAddress, createdAt } = machine;
  Object.assign(node, { name, country, countryIndex, region, ipAddress, createdAt });
}

/** Returns whether the node accepts sessions. */
export const isServing = (node: SimulatedNode): boolean => node.status === "online";

/** Returns whether the node has a failure, visible or not. */
export const isFailing = (node: SimulatedNode): boolean => node.failureMode !== "none";

/** Returns the time of the node's last report by `at`, on which last_seen, uptime and usage are based. */
export function lastHeartbeat(node: SimulatedNode, at: EpochMs): EpochMs {
  const until = Math.min(at, node.silentSince);
  const sincePhase = (((until - node.heartbeatPhaseMs) % HEARTBEAT_MS) + HEARTBEAT_MS) % HEARTBEAT_MS;
  return Math.min(until, Math.max(node.aliveSince, until - sincePhase));
}
