import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import type { EpochMs, MonotonicMs } from "../../../../src/model/time.ts";
import { nodesOfShare } from "../../daemon/simulation-parts.ts";

/** What an answer of the service showed about a node. */
export interface ShownNode {
  readonly id: string;
  /** Region or country, by `safety.correlated.by`. */
  readonly domain: string;
  /** Whether it meets the condition of the policy on outages. */
  readonly isUnhealthy: boolean;
  readonly lastSeenMs: EpochMs;
}

/** Nodes of one region or country that were shown to fail together. */
export interface ShownIncident {
  readonly domain: string;
  readonly nodes: ReadonlySet<string>;
  /** When the last of the nodes was shown to fail. */
  readonly to: MonotonicMs;
  /** Whether the journal was written since then, so that the next process knows the incident. */
  readonly isJournaled: boolean;
  /** End of the cooldown, or null if the incident is active. */
  readonly until: MonotonicMs | null;
}

/** Current inputs of the model. */
export interface OutageModelDeps {
  /** `safety.correlated`. */
  limits(): { readonly nodes: number; readonly share: number; readonly withinMs: DurationMs };
  /** `safety.storm_cooldown`. */
  cooldownMs(): DurationMs;
  /** Number of nodes in a region or country. */
  nodesIn(domain: string): number;
  /** The `max_age` of the policy. */
  maxAgeMs(): DurationMs;
  /** Whether an episode of the node is open. */
  isTreated(node: string): boolean;
}

/**
 * A model of the correlated failures that the daemon must recognize, fed from the answers of the service. It recognizes
 * only those that the documentation clearly promises to recognize.
 */
export interface OutageModel {
  /** Forgets which nodes were shown to be healthy, and the incidents that only the previous process knew. */
  startProcess(): void;
  /** Forgets which nodes were shown to be healthy, as after untrusted data. */
  forgetHealth(): void;
  /** Forgets all incidents, as after a change of the policy. */
  forgetIncidents(): void;
  observe(shown: readonly ShownNode[], at: MonotonicMs): void;
  recordCommit(at: MonotonicMs): void;
  /**
   * Starts the cooldown of incidents that may be over, and ends it. `isDown` returns whether a node is actually down.
   */
  endIncidents(isDown: (node: string) => boolean, at: MonotonicMs): void;
  /** Returns the incident that a node is part of, or null if there is none. */
  incidentOf(node: string, at: MonotonicMs): ShownIncident | null;
}

/** The longest time between an answer and its evaluation. Rounds wait for the actions of the round before. */
const EVALUATION_MS_MAX: DurationMs = 2 * MINUTE_MS;
/** Time for which a node must have been shown healthy for all timers to be inactive. Longer than any `clear_for`. */
const CLEAR_MS: DurationMs = 20 * MINUTE_MS;
/** An incident ends this long after enough nodes last failed together. */
const INCIDENT_MS_MAX: DurationMs = 6 * HOUR_MS;
/** Difference between two clocks. */
const CLOCK_TOLERANCE_MS: DurationMs = 10 * SECOND_MS;
/** A single node is not an incident. */
const INCIDENT_NODES_MIN = 2;

interface NodeState {
  verdict: "healthy" | "unhealthy" | "unknown";
  at: MonotonicMs;
  lastSeenMs: EpochMs;
  healthySince: MonotonicMs | null;
  /** Whether it has been healthy for so long that it fails anew. */
  isClear: boolean;
}

interface Failure {
  readonly node: string;
  readonly domain: string;
  readonly at: MonotonicMs;
  /** Whether it was shown healthy before. */
  readonly wasHealthy: boolean;
}

/** Creates a model that has seen no node. */
export function createOutageModel(deps: OutageModelDeps): OutageModel {
  const nodes = new Map<string, NodeState>();
  let failures: readonly Failure[] = [];
  let incidents: readonly ShownIncident[] = [];

  const sizeOf = (domain: string): number => {
    const { nodes: amount, share } = deps.limits();
    return Math.max(INCIDENT_NODES_MIN, Math.min(amount, nodesOfShare(share, deps.nodesIn(domain))));
  };
  const sizeAtFirst = (domain: string): number => {
    const { nodes: amount, share } = deps.limits();
    return Math.max(amount, nodesOfShare(share, deps.nodesIn(domain)));
  };

  function forgetHealth(): void {
    for (const node of nodes.values()) [node.verdict, node.healthySince] = ["unknown", null];
    failures = [];
  }

  function addFailure(failure: Failure): void {
    const { domain, at, wasHealthy } = failure;
    const withinMs = deps.limits().withinMs - EVALUATION_MS_MAX;
    failures = [...failures.filter((each) => at - each.at <= withinMs), failure];
    const together = failures.filter((each) => each.domain === domain);
    const healthyBefore = together.filter((each) => each.wasHealthy);
    // None of its nodes is online.
    const isDark = healthyBefore.length === 0 && together.length >= Math.max(INCIDENT_NODES_MIN, deps.nodesIn(domain));
    const isIncidentAtFirst = isDark || together.length >= sizeAtFirst(domain);
    const found = healthyBefore.length >= sizeOf(domain) ? healthyBefore : isIncidentAtFirst ? together : null;
    const known = incidents.find((each) => each.domain === domain);
    // A node that was not shown healthy may have failed with the others.
    const joins = known !== undefined && (!wasHealthy || at <= known.to + withinMs);
    if (found === null && !joins) return;
    const added = (found ?? [failure]).map(({ node }) => node);
    incidents = [
      ...incidents.filter((each) => each !== known),
      {
        domain,
        nodes: new Set([...(known?.nodes ?? []), ...added]),
        to: found === null ? known!.to : at,
        isJournaled: false,
        until: null,
      },
    ];
  }

  function observeNode({ id, domain, isUnhealthy, lastSeenMs }: ShownNode, at: MonotonicMs): void {
    const node: NodeState = nodes.get(id) ?? {
      verdict: "unknown",
      at,
      lastSeenMs: Number.NEGATIVE_INFINITY,
      healthySince: null,
      isClear: true,
    };
    // The daemon ignores records that are older than a known one, or contradict it.
    if (lastSeenMs < node.lastSeenMs) return;
    if (!isUnhealthy && node.verdict === "unhealthy" && lastSeenMs === node.lastSeenMs) return;
    const wasHealthy = node.verdict === "healthy" && at - node.at <= deps.maxAgeMs() - CLOCK_TOLERANCE_MS;
    const hasFailed = isUnhealthy && node.isClear && !deps.isTreated(id);
    const healthySince = isUnhealthy ? null : (node.healthySince ?? at);
    nodes.set(id, {
      verdict: isUnhealthy ? "unhealthy" : "healthy",
      at,
      lastSeenMs,
      healthySince,
      isClear: !isUnhealthy && (node.isClear || at - (healthySince ?? at) >= CLEAR_MS),
    });
    if (hasFailed) addFailure({ node: id, domain, at, wasHealthy });
  }

  return {
    startProcess() {
      forgetHealth();
      incidents = incidents.filter(({ isJournaled }) => isJournaled);
    },
    forgetHealth,
    forgetIncidents() {
      forgetHealth();
      incidents = [];
    },
    observe(shown, at) {
      for (const node of shown) observeNode(node, at);
    },
    recordCommit(at) {
      if (incidents.every(({ isJournaled }) => isJournaled)) return;
      incidents = incidents.map((each) => ({
        ...each,
        isJournaled: each.isJournaled || at - each.to > EVALUATION_MS_MAX,
      }));
    },
    endIncidents(isDown, at) {
      incidents = incidents.flatMap((incident) => {
        const { domain, nodes: together, until: known } = incident;
        const down = [...together].filter((node) => nodes.get(node)?.verdict === "unhealthy" && isDown(node)).length;
        if (down >= Math.max(sizeOf(domain), Math.ceil(deps.nodesIn(domain) / 2))) return { ...incident, until: null };
        const until = Math.min(known ?? Number.POSITIVE_INFINITY, at + deps.cooldownMs() - CLOCK_TOLERANCE_MS);
        return at >= until ? [] : { ...incident, until };
      });
    },
    incidentOf: (node, at) =>
      incidents.find(
        ({ nodes: together, to, until }) =>
          together.has(node) &&
          at < Math.min(until ?? Number.POSITIVE_INFINITY, to + INCIDENT_MS_MAX - EVALUATION_MS_MAX),
      ) ?? null,
  };
}
