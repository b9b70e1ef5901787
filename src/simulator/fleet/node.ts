import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { NodeStatus } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { hash, type Uint32 } from "../hash.ts";
import type { FailureMode, Remedy } from "./failure-modes.ts";
import { SITE_COUNTRIES, SITES } from "./locations.ts";
import { nodeId, nodeIdentity, siteIndex, VERSIONS, versionIndex } from "./node-identity.ts";
import type { ResourceLoad } from "./resource-load.ts";

/** How often a node that lives reports to the service. */
export const HEARTBEAT_MS: DurationMs = 15 * SECOND_MS;

/** An instant that is not scheduled, or a state that the node is not in. */
export const NEVER: EpochMs = Number.POSITIVE_INFINITY;

/** Relative sizes of machines: what share of sessions a node takes. */
const SIZES = [1, 1, 2, 2, 4] as const;
/** The largest of them. */
export const SIZE_MAX = 4;

/** A node as it is, whatever the service says of it. Instants are on the service's true clock, {@link NEVER} if none. */
export interface SimulatedNode {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly country: string;
  /** Index into COUNTRIES. */
  readonly countryIndex: number;
  readonly region: string;
  readonly ipAddress: string;
  createdAt: EpochMs;
  readonly size: number;
  /** Within a heartbeat, so that the fleet does not report all at once. */
  readonly heartbeatPhaseMs: DurationMs;
  version: string;
  status: Exclude<NodeStatus, "unknown">;
  /** When the status last changed. */
  changedAt: EpochMs;
  failureMode: FailureMode;
  remedy: Remedy;
  failingSince: EpochMs;
  /** What takes one of its resources beside any ailment; null: nothing. */
  load: ResourceLoad | null;
  /** Whether the ailment keeps it from responding just now. */
  isUnresponsive: boolean;
  /** Whether its region is cut off. */
  isRegionDown: boolean;
  recoverAt: EpochMs;
  /** Of a healthy node: when the next fault comes. */
  nextPhaseAt: EpochMs;
  rebootUntil: EpochMs;
  rebootForced: boolean;
  quarantineUntil: EpochMs;
  maintenanceUntil: EpochMs;
  maintenanceAt: EpochMs;
  /** The boot that it last reported. */
  bootAt: EpochMs;
  /** A boot that it has not yet been able to report; NEVER: none. */
  unreportedBootAt: EpochMs;
  /** When it began to respond. */
  aliveSince: EpochMs;
  /** When it ceased to respond; NEVER while it does. */
  silentSince: EpochMs;
  /** Whether it belongs to the fleet. */
  isPresent: boolean;
  /** Of a node that left: when it returns. */
  returnAt: EpochMs;
  /** The earliest of its own events. */
  nextAt: EpochMs;
  /** Uniform numbers drawn for it so far. */
  drawCount: number;
}

/** The node of that index as it was when it joined: healthy, and nothing scheduled. `isNew`: it joins at `at`. */
export function createNode(seed: Uint32, index: number, at: EpochMs, isNew = false): SimulatedNode {
  const site = siteIndex(seed, index);
  const place = SITES[site]!;
  const identity = nodeIdentity(seed, index, place);
  const { name, ipAddress } = identity;
  const ageMs = isNew ? 0 : identity.ageMs;
  const own = hash(seed, index, 0x51ce);
  return {
    index,
    id: nodeId(seed, index),
    name,
    country: place.country,
    countryIndex: SITE_COUNTRIES[site]!,
    region: place.region,
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

/** Whether the node takes sessions. */
export const isServing = (node: SimulatedNode): boolean => node.status === "online";

/** Whether something is wrong with the node itself, seen from outside or not. */
export const isFailing = (node: SimulatedNode): boolean => node.failureMode !== "none";

/** The node's last report at or before `at`: what last_seen, uptime and usage speak of. */
export function lastHeartbeat(node: SimulatedNode, at: EpochMs): EpochMs {
  const until = Math.min(at, node.silentSince);
  const sincePhase = (((until - node.heartbeatPhaseMs) % HEARTBEAT_MS) + HEARTBEAT_MS) % HEARTBEAT_MS;
  return Math.min(until, Math.max(node.aliveSince, until - sincePhase));
}
