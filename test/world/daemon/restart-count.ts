import type { MonotonicMs } from "../../../src/model/time.ts";
import type { SimulationParts } from "./simulation-parts.ts";

/** Counts the actual restarts of each node in the simulator. */
export interface RestartCount {
  observe(): void;
  /** Returns the number of restarts of a node that were observed from `from` to `to`, both included. */
  countOf(node: string, from: MonotonicMs, to: MonotonicMs): number;
}

/** Creates a count that starts at 0 for each node. */
export function createRestartCount({ service, clock }: SimulationParts): RestartCount {
  const { nodes } = service.network.fleet;
  const bootAt = new Map(nodes.map((node) => [node.id, node.bootAt]));
  const restartsOf = new Map<string, MonotonicMs[]>();
  return {
    observe() {
      for (const { id, bootAt: at } of nodes) {
        if (bootAt.get(id) === at) continue;
        bootAt.set(id, at);
        restartsOf.set(id, [...(restartsOf.get(id) ?? []), clock.monotonic()]);
      }
    },
    countOf: (node, from, to) => (restartsOf.get(node) ?? []).filter((at) => at >= from && at <= to).length,
  };
}
