import type { DurationMs } from "../../../src/base/duration.ts";
import type { Log, Transport } from "../../../src/model/ports.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import type { EpochMs, MonotonicMs } from "../../../src/model/time.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { statedStatus } from "../../../src/simulator/api/node-view.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import { NEVER, type SimulatedNode } from "../../../src/simulator/fleet/node.ts";
import { type SimulatedService, serviceTime } from "../../../src/simulator/http/service.ts";
import { advanceNetwork } from "../../../src/simulator/network.ts";
import { STATE_INDEX } from "../../../src/simulator/sessions/sessions.ts";
import type { BreakerModel } from "../invariants/breaker-model.ts";
import type { ServiceClockModel } from "../invariants/observation-invariants.ts";
import type { RegionOutages } from "../invariants/outages/region-outages.ts";
import type { DaemonProcess } from "./daemon-process.ts";
import type { Machine } from "./machine.ts";
import type { Observations } from "./observations.ts";
import type { RecordedState } from "./recording-store.ts";

/** A violated invariant. */
export interface Violation {
  readonly invariant: string;
  readonly at: MonotonicMs;
  readonly detail: string;
}

/** The actual state of a node when a request about it was sent. */
export interface NodeTruth {
  readonly at: MonotonicMs;
  readonly isFailing: boolean;
  /** When the service's status of the node last changed, on its clock without skew. */
  readonly changedAt: EpochMs;
  readonly status: string;
  /** Whether an operator has quarantined it. */
  readonly isWithOperator: boolean;
}

/** A POST that left the daemon. */
export interface PostAttempt {
  readonly at: MonotonicMs;
  /** The same on the journal's clock, which includes forward steps of the wall clock before the process started. */
  readonly steppedAt: MonotonicMs;
  readonly node: string;
  readonly region: string;
  readonly kind: string;
  readonly body: string;
  readonly truth: NodeTruth;
  /** The node at the last answered read of this process, or null if it has not been read yet. */
  readonly read: NodeTruth | null;
  /** The journal's row of the action, or null if there is none. */
  readonly action: Action | null;
  /** Status of the answer or kind of the failure, or null if not answered yet. */
  answer: number | string | null;
}

/** The result of an API call. */
export type PostAnswer = Awaited<ReturnType<Transport["request"]>>;

/** The daemon's API calls, as counted in its durable state. */
export interface ServiceCallCount {
  counted: number;
  /** Calls that could not be counted because the disk was full. The next write includes them. */
  pending: number;
  /** Pending calls of a process that was killed while the disk was full. */
  lost: number;
}

/** API calls by other users of the key. */
export interface ExternalUsers {
  calls: number;
  /** Time of the last call. */
  calledAt: MonotonicMs;
}

/** The simulated service and daemon, with everything that the invariants read. */
export interface SimulationParts {
  readonly service: SimulatedService;
  readonly clock: VirtualClock;
  readonly machine: Machine;
  readonly recordedState: RecordedState;
  /** Policies and limits of the active configuration. */
  config: RemediationConfig;
  /** The service's clock at the start of the simulation. */
  readonly startMs: EpochMs;
  readonly posts: PostAttempt[];
  /** POSTs by episode and step. */
  readonly postsOfStep: Map<string, PostAttempt[]>;
  /** The last POST of each node that it may still disrupt. */
  readonly disruptedByUs: Map<string, PostAttempt>;
  /** End of each quarantine by an operator, on the service's clock, by node. */
  readonly withOperator: Map<string, number>;
  readonly violations: Violation[];
  readonly observations: Observations;
  readonly callCount: ServiceCallCount;
  readonly externalUsers: ExternalUsers;
  /** When each node last had a failure or was cut off, on the service's clock. */
  readonly lastFailingAt: Map<string, EpochMs>;
  /** When an operator approved each action. */
  readonly approvals: Map<string, MonotonicMs>;
  /** When an operator last accepted the inventory. */
  acceptedAt: MonotonicMs;
  /** Nodes in the largest complete walk since then, or Infinity if no operator accepted the inventory. */
  acceptedNodes: number;
  /** The largest number of nodes that two complete walks in a row have shown, or an operator has accepted. */
  confirmedNodes: number;
  /** Nodes in the last complete walk. */
  lastWalkNodes: number;
  readonly breakerModel: BreakerModel;
  readonly serviceClock: ServiceClockModel;
  readonly regionOutages: RegionOutages;
  /** Whether this process has known most of the fleet, and no operator has accepted the inventory since. */
  hasKnownFleet: boolean;
  /** How far the journal's clock is ahead because the wall clock was stepped forward before a process started. */
  forwardMs: DurationMs;
  process: DaemonProcess | null;
  processStartedAt: MonotonicMs;
  /** Advances the simulated network and returns the service's time, without clock skew. */
  serviceNow(): number;
  addViolation(invariant: string, detail: string): void;
}

/** Returns a function that advances the service's network to now and returns the service's time, without clock skew. */
export function serviceTimeOf(service: SimulatedService, clock: VirtualClock): () => number {
  const time = serviceTime(service.clockAnchors, clock);
  return () => {
    advanceNetwork(service.network, time());
    return service.network.now;
  };
}

/** How long a failed session may count for a policy, including the time from its observation to the action. */
const FAILURES_MS: DurationMs = 90_000;

/** Counts the sessions of a node that failed recently. Sessions from before a recovery may fail some time after it. */
export function failuresOf({ service: { network }, serviceNow }: SimulationParts, id: string): number {
  const since = serviceNow() - FAILURES_MS;
  const { fleet, startMs, traffic } = network;
  const { sessions } = traffic.population;
  const index = fleet.nodes.findIndex((node) => node.id === id);
  let failures = 0;
  for (let slot = 0; slot < sessions.firstUnusedSlot; slot++) {
    if (sessions.node[slot] !== index) continue;
    const hasFailed = sessions.state[slot] === STATE_INDEX.error || sessions.state[slot] === STATE_INDEX.timeout;
    if (hasFailed && startMs + sessions.endedAt[slot]! >= since) failures++;
  }
  return failures;
}

/** The error of a disk that rejects writes. */
export const DISK_FULL = "the disk is full";
/** Errors of a full disk and of a killed process. */
const SIMULATED_ERRORS: ReadonlySet<string> = new Set([DISK_FULL, "killed", "the process was killed"]);

/** Creates a log that is discarded. An error is a violation, unless a fault of the simulation has caused it. */
export function createLog(parts: SimulationParts): Log {
  const error = (fields: { err?: unknown }, message: string) => {
    if (fields.err instanceof Error && !SIMULATED_ERRORS.has(fields.err.message))
      parts.addViolation("error logged", `${message}: ${fields.err.message}`);
  };
  return { debug: () => {}, info: () => {}, warn: () => {}, error };
}

/** Records which nodes have a failure, or are cut off, now. */
export function recordFailingNodes({ service, serviceNow, lastFailingAt }: SimulationParts): void {
  // The network advances only with calls, which may be hours apart.
  const now = serviceNow();
  for (const node of service.network.fleet.nodes) if (isFailing(service, node)) lastFailingAt.set(node.id, now);
}

/** Returns whether a node has a failure, is cut off, or is shown as offline while it reboots or is quarantined. */
const isFailing = (service: SimulatedService, node: SimulatedNode): boolean =>
  node.failureMode !== "none" || node.isRegionDown || statedStatus(service, node) === "offline";

/** Returns the actual state of a node now. */
export function nodeTruthOf({ service, clock, withOperator, serviceNow }: SimulationParts, id: string): NodeTruth {
  const now = serviceNow();
  const node = findNode(service.network.fleet, id);
  return {
    at: clock.monotonic(),
    isFailing: node !== null && isFailing(service, node),
    status: node === null ? "gone" : statedStatus(service, node),
    changedAt: node?.changedAt ?? now,
    isWithOperator: (withOperator.get(id) ?? Number.NEGATIVE_INFINITY) > now,
  };
}

/** Converts a share of a fleet to whole nodes, rounded down; a share above 0 is at least one node. */
export const nodesOfShare = (share: number, nodes: number): number =>
  share === 0 ? 0 : Math.max(1, Math.floor(share * nodes + 1e-9));

/** Returns whether the service's answer proves that the POST was not executed. */
export const wasRejected = ({ answer }: PostAttempt): boolean => answer === 401 || answer === 403 || answer === 429;

/** The longest time that a POST without an answer takes to reach the service. */
const WIRE_MS = 1_000;

/** Returns whether the node is still disrupted by a POST, by its actual state. */
export function isDisruptedByUs(parts: SimulationParts, post: PostAttempt): boolean {
  const { service, clock, withOperator } = parts;
  if (typeof post.answer === "number" && post.answer >= 400 && post.answer < 500) return false;
  const ageMs = clock.monotonic() - post.at;
  if (ageMs < WIRE_MS && typeof post.answer !== "number") return true;
  const node = findNode(service.network.fleet, post.node);
  if (node === null) return false;
  if (post.kind === "reboot") {
    // A reboot that lasts longer was not started by the POST.
    const isRebooting = node.rebootUntil !== NEVER && ageMs < service.network.fleet.rates.rebootMs + WIRE_MS;
    return (isRebooting && !looksUnchanged(parts, post, node)) || failedAfterReboot(parts, post, node);
  }
  const isWithOperator = (withOperator.get(post.node) ?? 0) > service.network.now;
  if (post.kind !== "quarantine" || isWithOperator) return false;
  return node.quarantineUntil !== NEVER;
}

/**
 * Returns whether the step is over, and the service shows the node as offline, as it was before the step: the daemon
 * can't tell that it is still rebooting.
 */
function looksUnchanged({ service, recordedState }: SimulationParts, post: PostAttempt, node: SimulatedNode): boolean {
  const isOver = recordedState.actions.get(post.action?.id ?? "")?.state === "ended";
  return isOver && post.truth.status === "offline" && statedStatus(service, node) === "offline";
}

/**
 * Returns whether the node was online before a reboot and has stayed down since its end, unless an operator accepted
 * that.
 */
function failedAfterReboot(
  { service, startMs, acceptedAt }: SimulationParts,
  post: PostAttempt,
  node: SimulatedNode,
): boolean {
  const isAtReboot = (at: EpochMs) => {
    const sinceMs = at - (startMs + post.at);
    return sinceMs >= 0 && sinceMs <= service.network.fleet.rates.rebootMs + WIRE_MS;
  };
  return (
    post.truth.status === "online" &&
    node.status === "offline" &&
    node.remedy === "operator" &&
    isAtReboot(node.failingSince) &&
    isAtReboot(node.silentSince) &&
    node.failingSince > startMs + acceptedAt
  );
}

/** The longest time between the end of a reboot and the removal of a node that does not return from it. */
const LEAVING_MS = 2_000;

/**
 * Returns reboot POSTs whose node left the fleet at the end of the reboot and is still gone, unless an operator
 * accepted that, or the node was given up while the list still showed it: then it is left to operators.
 */
export function lostNodes({
  service,
  posts,
  startMs,
  acceptedAt,
  recordedState,
}: SimulationParts): readonly PostAttempt[] {
  const { fleet } = service.network;
  const rebooted = posts.filter(
    ({ kind, answer, action }) =>
      kind === "reboot" &&
      !(typeof answer === "number" && answer >= 400 && answer < 500) &&
      recordedState.episodes.get(action?.episode ?? "")?.state !== "given_up",
  );
  return rebooted.filter((post) => {
    if (findNode(fleet, post.node) !== null) return false;
    const left =
      fleet.membershipChanges.findLast(({ id, kind }) => id === post.node && kind === "left")?.at ?? Number.NaN;
    const sinceMs = left - (startMs + post.at);
    return sinceMs >= 0 && sinceMs <= fleet.rates.rebootMs + LEAVING_MS && left > startMs + acceptedAt;
  });
}
