import { byName } from "../base/by-name.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Permit } from "../rate-limit/ledger.ts";
import type { Category, Lane } from "../rate-limit/limits.ts";
import { FairQueue, TRAFFIC_CLASSES, type TrafficShares, trafficClassOf } from "../scheduling/fair-queue.ts";

/** A call that waits for a permit. */
export interface WaitingCall {
  readonly category: Category;
  readonly lane: Lane;
  readonly since: MonotonicMs;
  /** Passes a permit, which may be used once `counted` resolves. */
  grant(permit: Permit, counted: Promise<void>): void;
}

/**
 * Calls that wait for a permit. Actions come first; the traffic classes share the rest by weight. Within a class calls
 * are served in the order of their arrival, but suspects precede routine details.
 */
export class PermitQueue {
  readonly #fairQueue = new FairQueue();
  readonly #queues = byName(["action", ...TRAFFIC_CLASSES] as const, (): WaitingCall[] => []);

  setShares(shares: TrafficShares): void {
    this.#fairQueue.setShares(shares);
  }

  isEmpty(): boolean {
    return Object.values(this.#queues).every((queue) => queue.length === 0);
  }

  /**
   * Adds a call. Resolves to its permit. If `signal` aborts first, calls `onAbort`, with the permit if it was granted and
   * not yet counted, and resolves to null.
   */
  wait(
    call: Omit<WaitingCall, "grant">,
    signal: AbortSignal,
    onAbort: (permit: Permit | null) => void,
  ): Promise<Permit | null> {
    return new Promise((resolve) => {
      let granted: Permit | null = null;
      const abort = () => {
        if (granted === null) {
          const queue = this.#queueOf(waiting);
          queue.splice(queue.indexOf(waiting), 1);
        }
        onAbort(granted);
        resolve(null);
      };
      const grant = (permit: Permit, counted: Promise<void>) => {
        granted = permit;
        void counted.then(() => {
          signal.removeEventListener("abort", abort);
          resolve(permit);
        });
      };
      const waiting: WaitingCall = { ...call, grant };
      signal.addEventListener("abort", abort, { once: true });
      this.#add(waiting);
    });
  }

  /**
   * Removes and grants the calls for which `mayGrant` returns true. It is called for each call right before the grant.
   * A call of a traffic class waits for those before it in the class; actions do not wait for each other.
   */
  serve(mayGrant: (call: WaitingCall) => boolean, grant: (call: WaitingCall) => void): void {
    const tryGrant = (queue: WaitingCall[], index: number): boolean => {
      const call = queue[index]!;
      if (!mayGrant(call)) return false;
      queue.splice(index, 1);
      grant(call);
      return true;
    };
    const { action } = this.#queues;
    for (let index = 0; index < action.length; ) if (!tryGrant(action, index)) index++;
    for (;;) {
      const waiting = TRAFFIC_CLASSES.filter((trafficClass) => this.#queues[trafficClass].length > 0);
      const served = this.#fairQueue.order(waiting).find((trafficClass) => tryGrant(this.#queues[trafficClass], 0));
      if (served === undefined) return;
      this.#fairQueue.recordServed(served);
    }
  }

  #add(call: WaitingCall): void {
    const queue = this.#queueOf(call);
    const trafficClass = trafficClassOf(call.category, call.lane);
    if (trafficClass !== null && queue.length === 0) this.#fairQueue.activate(trafficClass);
    const routine = call.lane === "suspect" ? queue.findIndex(({ lane }) => lane === "detail") : -1;
    queue.splice(routine < 0 ? queue.length : routine, 0, call);
  }

  #queueOf({ category, lane }: WaitingCall): WaitingCall[] {
    return this.#queues[trafficClassOf(category, lane) ?? "action"];
  }
}
