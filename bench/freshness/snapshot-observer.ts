import { type DurationMs, MINUTE_MS } from "../../src/base/duration.ts";
import type { Inventory } from "../../src/inventory/inventory.ts";
import { NODE_STATUSES, type NodeId } from "../../src/model/node.ts";
import type { Clock, Transport, TransportRequest } from "../../src/model/ports.ts";
import type { Fleet, Snapshot } from "../../src/model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../src/model/time.ts";
import type { Plan } from "../../src/scheduling/planner.ts";
import type { Detector } from "./detection.ts";
import { type Fault, type Script, THRESHOLD } from "./script.ts";

/** Observes the requests of the daemon and its snapshots. */
export interface SnapshotObserver {
  /** Returns a transport that records every detail read. */
  observe(transport: Transport): Transport;
  update(snapshot: Snapshot, plan: Plan): void;
}

/** The `for` of the benchmark's policies. */
const FOR_MS: DurationMs = 15 * MINUTE_MS;
/** Detail reads per round that a firing policy requests. */
const READS_WHILE_FIRING = 2;
const COLUMNS = { cpu: "cpuUsage", memory: "memoryUsage", disk: "diskUsage" } as const;
const OFFLINE = NODE_STATUSES.indexOf("offline");

/** Creates an observer that reports to the detector when snapshots show a fault. */
export function createSnapshotObserver(
  script: Script,
  detector: Detector,
  inventory: Inventory,
  clock: Clock,
): SnapshotObserver {
  const indexes = new Map(Array.from(detector.detailedAt, (_, index) => [`/v1/nodes/${script.idOf(index)}`, index]));
  const slots = new Map<NodeId, number>();
  /** Visible usage faults, and when each was found. */
  const found = new Map<Fault, MonotonicMs>();
  /** Detail reads that no snapshot includes yet. */
  let pendingReads: { readonly index: number; readonly sentAt: EpochMs }[] = [];

  /** Returns -1 if the inventory no longer has the node. */
  const slotOf = (id: NodeId, { ids }: Fleet): number => {
    const slot = slots.get(id) ?? -1;
    if (ids[slot] === id) return slot;
    ids.forEach((each, index) => void slots.set(each, index));
    return ids[slots.get(id) ?? -1] === id ? slots.get(id)! : -1;
  };

  const isShown = ({ id, load }: Fault, fleet: Fleet): boolean => {
    const slot = slotOf(id, fleet);
    if (slot === -1) return false;
    return load === null ? fleet.status[slot] === OFFLINE : fleet[COLUMNS[load.resource]].at(slot) > THRESHOLD;
  };

  /**
   * Sets the detail deadlines that remediation would set for nodes above the threshold: at the end of `for`, then
   * several times per round.
   */
  function setDeadlines({ at, fleet }: Snapshot, { details }: Plan): void {
    for (const fault of found.keys()) if (!isShown(fault, fleet)) found.delete(fault);
    const deadline = ([{ id }, since]: [Fault, MonotonicMs]): [NodeId, MonotonicMs] => {
      if (at < since + FOR_MS) return [id, since + FOR_MS];
      return [id, fleet.detailedAt.at(slotOf(id, fleet)) + (details?.intervalMs ?? 0) / READS_WHILE_FIRING];
    };
    inventory.setDetailDeadlines(new Map([...found].map(deadline)));
  }

  return {
    observe: (transport) => ({
      ...transport,
      async request(request: TransportRequest, signal) {
        const sentAt = clock.now();
        const answer = await transport.request(request, signal);
        const index = indexes.get(request.path);
        if (index !== undefined && answer.ok && answer.value.status === 200) pendingReads.push({ index, sentAt });
        return answer;
      },
    }),
    update(snapshot, plan) {
      const now = clock.now();
      for (const { index, sentAt } of pendingReads) detector.recordDetail(index, sentAt, now, false);
      pendingReads = [];
      for (const fault of [...detector.undetected(now)]) {
        if (!isShown(fault, snapshot.fleet)) continue;
        detector.recordDetection(fault, now);
        if (fault.load !== null) found.set(fault, snapshot.at);
      }
      setDeadlines(snapshot, plan);
    },
  };
}
