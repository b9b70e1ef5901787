import type { DurationMs } from "../../src/base/duration.ts";
import type { Rules } from "../../src/engine/ward.ts";
import type { Action } from "../../src/model/episode.ts";
import type { Transport } from "../../src/model/ports.ts";
import type { EpochMs, MonotonicMs } from "../../src/model/time.ts";
import { serviceTime } from "../../src/simulator/anchor.ts";
import type { VirtualClock } from "../../src/simulator/clock.ts";
import { findNode } from "../../src/simulator/fleet.ts";
import { nodeTruth } from "../../src/simulator/inspection.ts";
import { NEVER } from "../../src/simulator/node.ts";
import type { SimulatedService } from "../../src/simulator/service.ts";
import { STATE } from "../../src/simulator/sessions.ts";
import { advanceWorld } from "../../src/simulator/world.ts";
import type { Chronicle } from "./chronicle.ts";
import type { Life } from "./life.ts";
import type { Observations } from "./observations.ts";
import type { Tripwire } from "./tripwire.ts";

/** Something that must never be, and was. */
export interface Breach {
  readonly law: string;
  readonly at: MonotonicMs;
  readonly detail: string;
}

/** A node as it truly was when a request about it was sent. */
export interface Moment {
  readonly at: MonotonicMs;
  readonly isIll: boolean;
  readonly status: string;
  /** Whether a quarantine held it that a person made. */
  readonly isWithPeople: boolean;
}

/** A POST that left the daemon. */
export interface Post {
  readonly at: MonotonicMs;
  /** The same on the journal's clock: a process that begins believes a wall clock that was set forward. */
  readonly steppedAt: MonotonicMs;
  readonly node: string;
  readonly region: string;
  readonly kind: string;
  readonly body: string;
  readonly truth: Moment;
  /** The read of the node that was answered last in this life; null: there was none. */
  readonly read: Moment | null;
  /** The row that the journal has of it; null: none. */
  readonly action: Action | null;
  /** Status of the answer, or why there was none; null: still on its way. */
  answer: number | string | null;
}

/** What came of a call. */
export type Answer = Awaited<ReturnType<Transport["request"]>>;

/** Calls of ours, as they were counted durably. */
export interface CallLedger {
  counted: number;
  /** What the disk refused to count, and is counted with the next call. */
  pending: number;
  /** What a process still had to count when it was killed while the disk was full. */
  lost: number;
}

/** Other users of the API key. */
export interface OtherUsers {
  calls: number;
  /** When one of them called last. */
  calledAt: MonotonicMs;
}

/** All that happens, and all that laws look at. */
export interface Stage {
  readonly service: SimulatedService;
  readonly clock: VirtualClock;
  readonly chronicle: Chronicle;
  /** Those in force. */
  rules: Rules;
  /** When the service's clock stood at which the simulation began. */
  readonly startMs: EpochMs;
  readonly posts: Post[];
  /** By episode and step. */
  readonly postsOfStep: Map<string, Post[]>;
  /** The last POST of each node on which it may still have its effect. */
  readonly underHand: Map<string, Post>;
  /** Nodes that people have in quarantine, and until when on the service's clock. */
  readonly withPeople: Map<string, number>;
  readonly breaches: Breach[];
  readonly seen: Observations;
  readonly ledger: CallLedger;
  readonly others: OtherUsers;
  /** When each node was last known to be ill or cut off, on the service's clock. */
  readonly wasIllAt: Map<string, EpochMs>;
  /** When an operator approved each action. */
  readonly approvals: Map<string, MonotonicMs>;
  /** When an operator accepted the inventory last. */
  acceptedAt: MonotonicMs;
  readonly tripwire: Tripwire;
  /** How far the journal's clock is ahead of the time that has passed: what the wall clock was set forward between lives. */
  forwardMs: DurationMs;
  life: Life | null;
  /** When it began. */
  bornAt: MonotonicMs;
  /** True service time, without any skew; the network behind it is brought there as well. */
  serviceNow(): number;
  breach(law: string, detail: string): void;
}

/** The true time of a service, to which its network is brought as well. */
export function trueTime(service: SimulatedService, clock: VirtualClock): () => number {
  const time = serviceTime(service.anchors, clock);
  return () => {
    advanceWorld(service.world, time());
    return service.world.now;
  };
}

/** A failed session tells of its node for a minute, and for as long as it may take to act after that was seen. */
const FAILURES_MS: DurationMs = 90_000;

/** Sessions of a node that truly failed lately. Those that began while it was ill go on to fail for a while after its cure. */
export function failuresOf({ service: { world }, serviceNow }: Stage, id: string): number {
  const since = serviceNow() - FAILURES_MS;
  const { fleet, startMs, traffic } = world;
  const { sessions } = traffic.population;
  const index = fleet.nodes.findIndex((node) => node.id === id);
  let failures = 0;
  for (let slot = 0; slot < sessions.fresh; slot++) {
    if (sessions.node[slot] !== index) continue;
    const hasFailed = sessions.state[slot] === STATE.error || sessions.state[slot] === STATE.timeout;
    if (hasFailed && startMs + sessions.endedAt[slot]! >= since) failures++;
  }
  return failures;
}

/** A node as it truly is now. */
export function momentOf({ service, clock, withPeople, serviceNow }: Stage, id: string): Moment {
  const now = serviceNow();
  const truth = nodeTruth(service, id);
  return {
    at: clock.monotonic(),
    isIll: truth !== null && (truth.ailment !== "none" || truth.dark),
    status: truth?.status ?? "gone",
    isWithPeople: (withPeople.get(id) ?? Number.NEGATIVE_INFINITY) > now,
  };
}

/** A share of a fleet in whole nodes; above 0 it is one at least. */
export const wholeNodes = (share: number, nodes: number): number =>
  share === 0 ? 0 : Math.max(1, Math.floor(share * nodes + 1e-9));

/** A POST surely was not carried out: the service said so. */
export const wasRefused = ({ answer }: Post): boolean => answer === 401 || answer === 403 || answer === 429;

/** So long a POST may be on its way. */
const WIRE_MS = 1_000;

/** Whether what a POST began still lasts, by the service's own truth. */
export function isUnderHand({ service, clock, withPeople }: Stage, post: Post): boolean {
  if (typeof post.answer === "number" && post.answer >= 400 && post.answer < 500) return false;
  const ageMs = clock.monotonic() - post.at;
  if (ageMs < WIRE_MS) return true;
  const node = findNode(service.world.fleet, post.node);
  if (node === null) return false;
  // Later than that it reboots by itself.
  if (post.kind === "reboot") return node.rebootUntil !== NEVER && ageMs < service.world.fleet.rates.rebootMs + WIRE_MS;
  const isWithPeople = (withPeople.get(post.node) ?? 0) > service.world.now;
  if (post.kind !== "quarantine" || isWithPeople) return false;
  return node.quarantineUntil !== NEVER;
}

/** A node that is to leave with a reboot of ours leaves so soon after the reboot is over. */
const LEAVING_MS = 2_000;

/** POSTs whose node left the fleet at the end of the reboot that they began, and is not back; no operator accepted it. */
export function lostNodes({ service, posts, startMs, acceptedAt }: Stage): readonly Post[] {
  const { fleet } = service.world;
  const rebooted = posts.filter(
    ({ kind, answer }) => kind === "reboot" && !(typeof answer === "number" && answer >= 400 && answer < 500),
  );
  return rebooted.filter((post) => {
    if (findNode(fleet, post.node) !== null) return false;
    const left = fleet.moves.findLast(({ id, kind }) => id === post.node && kind === "left")?.at ?? Number.NaN;
    const sinceMs = left - (startMs + post.at);
    return sinceMs >= 0 && sinceMs <= fleet.rates.rebootMs + LEAVING_MS && left > startMs + acceptedAt;
  });
}
