import type { MonotonicMs } from "../../../src/model/time.ts";
import type { SimulationParts } from "./simulation-parts.ts";

/** Counts the restarts of each node, by the simulator's own truth. */
export interface RestartCount {
  observe(): void;
  /** Restarts of a node that were seen from one time to another. */
  countOf(node: string, from: MonotonicMs, to: MonotonicMs): number;
}

/** Creates a count that begins now. */
export function createRestartCount({ service, clock }: SimulationParts): RestartCount {
  const { nodes } = service.world.fleet;
  const bootAt = new Map(nodes.map((node) => [node.id, node.bootAt]));
  const seenAt = new Map<string, MonotonicMs[]>();
  return {
    observe() {
      for (const { id, bootAt: at } of nodes) {
        if (bootAt.get(id) === at) continue;
        bootAt.set(id, at);
        seenAt.set(id, [...(seenAt.get(id) ?? []), clock.monotonic()]);
      }
    },
    countOf: (node, from, to) => (seenAt.get(node) ?? []).filter((at) => at >= from && at <= to).length,
  };
}
