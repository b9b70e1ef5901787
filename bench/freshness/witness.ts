import { type DurationMs, MINUTE_MS } from "../../src/base/duration.ts";
import type { Inventory } from "../../src/inventory/inventory.ts";
import { NODE_STATUSES, type NodeId } from "../../src/model/node.ts";
import type { Clock, Transport, TransportRequest } from "../../src/model/ports.ts";
import type { Fleet, Snapshot } from "../../src/model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../src/model/time.ts";
import type { Plan } from "../../src/scheduling/planner.ts";
import type { Finder } from "./finding.ts";
import { type Fault, type Script, THRESHOLD } from "./script.ts";

/** Looks at the engine from both sides: at what it asks the service, and at what its snapshots show. */
export interface Witness {
  /** The transport, with every detail read noted. */
  over(transport: Transport): Transport;
  see(snapshot: Snapshot, plan: Plan): void;
}

/** How long the policies of the bench want to see a usage above the threshold, before they fire. */
const FOR_MS: DurationMs = 15 * MINUTE_MS;
/** Looks that a policy which fires wants in a round. */
const FIRING_LOOKS = 2;
const COLUMNS = { cpu: "cpuUsage", memory: "memoryUsage", disk: "diskUsage" } as const;
const OFFLINE = NODE_STATUSES.indexOf("offline");

/** A witness that tells the finder what the snapshots show, when they show it. */
export function createWitness(script: Script, finder: Finder, inventory: Inventory, clock: Clock): Witness {
  const indexes = new Map(Array.from(finder.known, (_, index) => [`/v1/nodes/${script.idOf(index)}`, index]));
  const slots = new Map<NodeId, number>();
  const waiting = new Map<Fault, MonotonicMs>();
  let unseen: { readonly index: number; readonly sentAt: EpochMs }[] = [];

  /** -1: the inventory has lost the node. */
  const slotOf = (id: NodeId, { ids }: Fleet): number => {
    const slot = slots.get(id) ?? -1;
    if (ids[slot] === id) return slot;
    ids.forEach((each, index) => void slots.set(each, index));
    return ids[slots.get(id) ?? -1] === id ? slots.get(id)! : -1;
  };

  const shown = ({ id, strain }: Fault, fleet: Fleet): boolean => {
    const slot = slotOf(id, fleet);
    if (slot === -1) return false;
    return strain === null ? fleet.status[slot] === OFFLINE : fleet[COLUMNS[strain.resource]][slot]! > THRESHOLD;
  };

  /** What the warden would say: policies wait for the nodes above the threshold, first to fire, then to be done. */
  function awaitDetails({ at, fleet }: Snapshot, { details }: Plan): void {
    for (const fault of waiting.keys()) if (!shown(fault, fleet)) waiting.delete(fault);
    const wanted = ([{ id }, since]: [Fault, MonotonicMs]): [NodeId, MonotonicMs] => {
      if (at < since + FOR_MS) return [id, since + FOR_MS];
      return [id, fleet.detailedAt[slotOf(id, fleet)]! + (details?.intervalMs ?? 0) / FIRING_LOOKS];
    };
    inventory.setDetailDeadlines(new Map([...waiting].map(wanted)));
  }

  return {
    over: (transport) => ({
      ...transport,
      async request(request: TransportRequest, signal) {
        const sentAt = clock.now();
        const answer = await transport.request(request, signal);
        const index = indexes.get(request.path);
        if (index !== undefined && answer.ok && answer.value.status === 200) unseen.push({ index, sentAt });
        return answer;
      },
    }),
    see(snapshot, plan) {
      const now = clock.now();
      for (const { index, sentAt } of unseen) finder.node(index, sentAt, now, false);
      unseen = [];
      for (const fault of [...finder.open(now)]) {
        if (!shown(fault, snapshot.fleet)) continue;
        finder.found(fault, now);
        if (fault.strain !== null) waiting.set(fault, snapshot.at);
      }
      awaitDetails(snapshot, plan);
    },
  };
}
