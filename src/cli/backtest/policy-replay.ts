import { CollectorReporter } from "../../collectors/collector-health.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import { SessionWalkHistory } from "../../inventory/sessions/session-walks.ts";
import { createMemoryStateStore } from "../../journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { NodeId } from "../../model/node.ts";
import type { ExternalBlockers } from "../../model/ports.ts";
import type { Decision } from "../../model/remediation/episode.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { Notifier } from "../../notify/notifier.ts";
import { createFailureLog } from "../../platform/log.ts";
import { createRemediationContext, type RemediationConfig } from "../../remediation/context.ts";
import { RemediationRound } from "../../remediation/round.ts";
import { openRemediationState } from "../../remediation/state/journaled-state.ts";
import { stepName } from "../../web/api/remediation-views.ts";
import type { ReplayedPoint } from "./replayed-fleet.ts";

/** The clock of a replay. Its time changes only with `set`. */
export type ReplayClock = ReturnType<typeof createReplayClock>;

/** Creates the clock of a replay that begins at `startMs`. */
export function createReplayClock(startMs: EpochMs) {
  let nowMs = startMs;
  return {
    set(at: EpochMs): void {
      nowMs = at;
    },
    now: () => nowMs,
    monotonic: () => nowMs - startMs,
    sleep: () => Promise.resolve(),
    /** Returns the time of the service's clock, which is assumed to agree with the daemon's. */
    serviceTime: (at: MonotonicMs): EpochMs => startMs + at,
  };
}

/** Dependencies of a replay. */
interface PolicyReplayDeps {
  readonly config: RemediationConfig;
  readonly clock: ReplayClock;
  readonly inventory: Inventory;
  readonly externalBlockers: ExternalBlockers;
}

/**
 * Starts the daemon's remediation over the fleet of a replay, as a dry run: everything is evaluated, guarded and decided
 * as usual, and steps are verified by what the history shows afterwards. Nothing is sent or kept.
 */
export async function startPolicyReplay(deps: PolicyReplayDeps) {
  const { config, clock, inventory, externalBlockers } = deps;
  const outcome = new ReplayOutcome(config.policies);
  const log = createFailureLog();
  const metrics = createDaemonMetrics({ process: false });
  const store = createMemoryStateStore();
  // Nothing reads the rows, so they are not written.
  const journal = { ...store.journal, commit: () => Promise.resolve() };
  const remediationState = await openRemediationState({
    journal,
    clock,
    log,
    lostReason: null,
    onChange(changes) {
      for (const change of changes) if (change.kind === "decision") outcome.record(change.row);
    },
  });
  const noCall = () => Promise.reject(new Error("a replay must not call the service"));
  const context = createRemediationContext({
    remediationState,
    journal,
    inventory,
    externalBlockers,
    clock,
    metrics,
    log,
    config: { ...config, safety: { ...config.safety, mode: "dry_run" } },
    serviceUrl: "",
    sessionWalks: new SessionWalkHistory(),
    detailReporter: new CollectorReporter("details", { clock, log, metrics }),
    client: {
      get: noCall,
      post: noCall,
      serviceTime: clock.serviceTime,
      serviceTimeAgreedAt: () => clock.monotonic(),
      clockSkewMs: () => 0,
    },
    rateLimiter: { heldForMs: () => 0, monthLeftMs: () => 0 },
    notifier: new Notifier({ receivers: [], clock, random: () => 0, log }),
    onRead() {},
  });
  const never = new AbortController().signal;
  const round = new RemediationRound(context, { noNewSteps: never, abortPost: never });
  return {
    outcome,
    /** Runs a round. Throws the first exception that was logged. */
    async run(point: ReplayedPoint): Promise<void> {
      context.observed.latest = point;
      await round.run();
      log.throwFirst();
    },
    close: () => store.close(),
  };
}

/** A step that a policy would have taken. */
export interface ReplayedAction {
  readonly at: EpochMs;
  readonly policy: string;
  readonly node: NodeId;
  /** Such as `reboot`, `forced reboot` or `notify`. */
  readonly action: string;
  /** Index of the policy's step. */
  readonly step: number;
}

/** How often, and on which nodes, a policy would have been held for one reason. */
interface HoldCount {
  /** How often the reasons for a node changed to ones that include this reason. */
  times: number;
  readonly nodes: Set<NodeId>;
  /** Detail of the first one. */
  readonly example: string;
}

/** Collects the decisions of the policies in a replay. */
export class ReplayOutcome {
  readonly policies: readonly PolicySpec[];
  readonly actions: ReplayedAction[] = [];
  readonly #holds = new Map<string, Map<string, HoldCount>>();

  constructor(policies: readonly PolicySpec[]) {
    this.policies = policies;
  }

  record({ at, policy, node, step, verdict, blockers }: Decision): void {
    const spec = this.policies.find(({ name }) => name === policy)!;
    if (verdict === "act") {
      this.actions.push({ at, policy, node, step, action: stepName(spec.steps[step]!) });
      return;
    }
    const reasons = this.#holds.get(policy) ?? new Map<string, HoldCount>();
    this.#holds.set(policy, reasons);
    for (const { reason, detail } of blockers) {
      const count = reasons.get(reason) ?? { times: 0, nodes: new Set(), example: detail };
      reasons.set(reason, count);
      count.times++;
      count.nodes.add(node);
    }
  }

  /** Returns the holds of a policy, most nodes first. */
  holdsOf(policy: string) {
    return [...(this.#holds.get(policy) ?? [])]
      .map(([reason, { times, nodes, example }]) => ({ reason, times, nodes: nodes.size, example }))
      .toSorted((a, b) => b.nodes - a.nodes);
  }
}
