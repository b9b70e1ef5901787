import type { DurationMs } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import type { EpochMs, MonotonicMs } from "../../../src/model/time.ts";
import type { RemediationRules } from "../../../src/remediation/context.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import { NEVER } from "../../../src/simulator/fleet/node.ts";
import type { SimulatedService } from "../../../src/simulator/http/service.ts";
import { serviceTime } from "../../../src/simulator/http/time-anchor.ts";
import { actualNode } from "../../../src/simulator/inspection.ts";
import { advanceWorld } from "../../../src/simulator/network.ts";
import { STATE_INDEX } from "../../../src/simulator/sessions/sessions.ts";
import type { BreakerModel } from "../invariants/breaker-model.ts";
import type { DaemonProcess } from "./daemon-process.ts";
import type { Observations } from "./observations.ts";
import type { RecordedState } from "./recording-store.ts";

/** Something that must never be, and was. */
export interface Violation {
  readonly invariant: string;
  readonly at: MonotonicMs;
  readonly detail: string;
}

/** A node as it truly was when a request about it was sent. */
export interface NodeTruth {
  readonly at: MonotonicMs;
  readonly isFailing: boolean;
  readonly status: string;
  /** Whether a quarantine held it that a person made. */
  readonly isWithOperator: boolean;
}

/** A POST that left the daemon. */
export interface PostAttempt {
  readonly at: MonotonicMs;
  /** The same on the journal's clock: a process that begins believes a wall clock that was set forward. */
  readonly steppedAt: MonotonicMs;
  readonly node: string;
  readonly region: string;
  readonly kind: string;
  readonly body: string;
  readonly truth: NodeTruth;
  /** The read of the node that was answered last in this life; null: there was none. */
  readonly read: NodeTruth | null;
  /** The row that the journal has of it; null: none. */
  readonly action: Action | null;
  /** Status of the answer, or why there was none; null: still on its way. */
  answer: number | string | null;
}

/** What came of a call. */
export type PostAnswer = Awaited<ReturnType<Transport["request"]>>;

/** Calls of ours, as they were counted durably. */
export interface ServiceCallCount {
  counted: number;
  /** What the disk refused to count, and is counted with the next call. */
  pending: number;
  /** What a process still had to count when it was killed while the disk was full. */
  lost: number;
}

/** Other users of the API key. */
export interface ExternalUsers {
  calls: number;
  /** When one of them called last. */
  calledAt: MonotonicMs;
}

/** All that happens, and all that laws look at. */
export interface SimulationParts {
  readonly service: SimulatedService;
  readonly clock: VirtualClock;
  readonly recordedState: RecordedState;
  /** Those in force. */
  rules: RemediationRules;
  /** When the service's clock stood at which the simulation began. */
  readonly startMs: EpochMs;
  readonly posts: PostAttempt[];
  /** By episode and step. */
  readonly postsOfStep: Map<string, PostAttempt[]>;
  /** The last POST of each node on which it may still have its effect. */
  readonly disruptedByUs: Map<string, PostAttempt>;
  /** Nodes that people have in quarantine, and until when on the service's clock. */
  readonly withOperator: Map<string, number>;
  readonly violations: Violation[];
  readonly observations: Observations;
  readonly callCount: ServiceCallCount;
  readonly externalUsers: ExternalUsers;
  /** When each node was last known to be ill or cut off, on the service's clock. */
  readonly wasIllAt: Map<string, EpochMs>;
  /** When an operator approved each action. */
  readonly approvals: Map<string, MonotonicMs>;
  /** When an operator accepted the inventory last. */
  acceptedAt: MonotonicMs;
  /** Nodes that the largest complete walk since then has shown; infinite: no operator accepted the inventory. */
  acceptedNodes: number;
  readonly breakerModel: BreakerModel;
  /** How far the journal's clock is ahead of the time that has passed: what the wall clock was set forward between lives. */
  forwardMs: DurationMs;
  process: DaemonProcess | null;
  /** When it began. */
  bornAt: MonotonicMs;
  /** True service time, without any skew; the network behind it is brought there as well. */
  serviceNow(): number;
  addViolation(invariant: string, detail: string): void;
}

/** The true time of a service, to which its network is brought as well. */
export function serviceTimeOf(service: SimulatedService, clock: VirtualClock): () => number {
  const time = serviceTime(service.clockAnchors, clock);
  return () => {
    advanceWorld(service.world, time());
    return service.world.now;
  };
}

/** A failed session tells of its node for a minute, and for as long as it may take to act after that was seen. */
const FAILURES_MS: DurationMs = 90_000;

/** Sessions of a node that truly failed lately. Those that began while it was ill go on to fail for a while after its cure. */
export function failuresOf({ service: { world }, serviceNow }: SimulationParts, id: string): number {
  const since = serviceNow() - FAILURES_MS;
  const { fleet, startMs, traffic } = world;
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

/** A node as it truly is now. */
export function nodeTruthOf(
  { service, clock, withOperator: withPeople, serviceNow }: SimulationParts,
  id: string,
): NodeTruth {
  const now = serviceNow();
  const truth = actualNode(service, id);
  return {
    at: clock.monotonic(),
    isFailing: truth !== null && (truth.failureMode !== "none" || truth.isRegionDown),
    status: truth?.status ?? "gone",
    isWithOperator: (withPeople.get(id) ?? Number.NEGATIVE_INFINITY) > now,
  };
}

/** A share of a fleet in whole nodes; above 0 it is one at least. */
export const nodesOfShare = (share: number, nodes: number): number =>
  share === 0 ? 0 : Math.max(1, Math.floor(share * nodes + 1e-9));

/** A POST surely was not carried out: the service said so. */
export const wasRejected = ({ answer }: PostAttempt): boolean => answer === 401 || answer === 403 || answer === 429;

/** So long a POST may be on its way. */
const WIRE_MS = 1_000;

/** Whether what a POST began still lasts, by the service's own truth. */
export function isDisruptedByUs(
  { service, clock, withOperator: withPeople }: SimulationParts,
  post: PostAttempt,
): boolean {
  if (typeof post.answer === "number" && post.answer >= 400 && post.answer < 500) return false;
  const ageMs = clock.monotonic() - post.at;
  if (ageMs < WIRE_MS) return true;
  const node = findNode(service.world.fleet, post.node);
  if (node === null) return false;
  // Later than that it reboots by itself.
  if (post.kind === "reboot") return node.rebootUntil !== NEVER && ageMs < service.world.fleet.rates.rebootMs + WIRE_MS;
  const isWithOperator = (withPeople.get(post.node) ?? 0) > service.world.now;
  if (post.kind !== "quarantine" || isWithOperator) return false;
  return node.quarantineUntil !== NEVER;
}

/** A node that is to leave with a reboot of ours leaves so soon after the reboot is over. */
const LEAVING_MS = 2_000;

/** POSTs whose node left the fleet at the end of the reboot that they began, and is not back; no operator accepted it. */
export function lostNodes({ service, posts, startMs, acceptedAt }: SimulationParts): readonly PostAttempt[] {
  const { fleet } = service.world;
  const rebooted = posts.filter(
    ({ kind, answer }) => kind === "reboot" && !(typeof answer === "number" && answer >= 400 && answer < 500),
  );
  return rebooted.filter((post) => {
    if (findNode(fleet, post.node) !== null) return false;
    const left =
      fleet.membershipChanges.findLast(({ id, kind }) => id === post.node && kind === "left")?.at ?? Number.NaN;
    const sinceMs = left - (startMs + post.at);
    return sinceMs >= 0 && sinceMs <= fleet.rates.rebootMs + LEAVING_MS && left > startMs + acceptedAt;
  });
}
