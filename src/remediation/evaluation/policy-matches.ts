import type { PolicySpec } from "../../model/policy/policy.ts";
import type { Log } from "../../model/ports.ts";
import type { MatchedNodes } from "../status/views.ts";

/** Number of nodes that the `match` of a policy selects, and that it excludes. It is unknown for the others. */
export interface MatchCounts {
  selected: number;
  excluded: number;
}

/** Keeps how many nodes each policy matches, and warns once about each policy that matches none. */
export class PolicyMatches {
  readonly #log: Log;
  readonly #byPolicy = new Map<string, MatchedNodes>();
  /** The policies that were warned about. */
  readonly #reported = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Returns how many nodes a policy matches, or null if it was not evaluated on all nodes yet. */
  of(policy: string): MatchedNodes | null {
    return this.#byPolicy.get(policy) ?? null;
  }

  /** Records the result of an evaluation on all nodes. */
  record({ name, match }: PolicySpec, { selected, excluded }: MatchCounts, nodes: number): void {
    this.#byPolicy.set(name, { nodes: selected, of: nodes });
    if (nodes === 0 || excluded < nodes || this.#reported.has(name)) return;
    this.#reported.add(name);
    this.#log.warn({ policy: name, match, nodes }, "the policy matches no node");
  }
}
