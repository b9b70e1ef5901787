import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { NodeId } from "../../model/node.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { Fleet, Snapshot } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { EvaluationScope } from "../../policy/cel/field-values.ts";
import { isDryRun } from "../../policy/facts.ts";
import { type Policy, policySources } from "../../policy/policy.ts";
import {
  INACTIVE,
  markUnseen,
  markUntrusted,
  observeCondition,
  type Timer,
  type TimerRule,
  toTimerRow,
} from "../../policy/timers/timer.ts";
import { evaluatePolicy, type MaxAgeOf } from "../../policy/timers/verdict.ts";
import type { RemediationContext } from "../context.ts";
import { knownCreatedAt } from "../node-identity.ts";
import type { FleetHealth } from "./fleet-health.ts";

type EvaluatorDeps = Pick<RemediationContext, "clock" | "observed" | "policies" | "remediationState">;

/** Runs the timers of all policies over the observed nodes. */
export interface RuleEvaluator {
  /**
   * Evaluates every node that was observed again. `replaced`: nodes whose id another node has by now; their timers start
   * over. What `note` returns is written in the same transaction as the timers. Yields to the event loop in between.
   */
  evaluate(replaced: ReadonlySet<NodeId>, note: FleetHealth["recordChanges"]): Promise<void>;
  /** Resets pending timers, because fleet data is not trusted. */
  markUntrusted(): void;
}

/** One policy, and what it needs to evaluate a snapshot. */
interface PolicyPass {
  readonly policy: Policy;
  readonly scope: EvaluationScope;
  readonly ages: MaxAgeOf;
  readonly rule: TimerRule;
  readonly dryRun: boolean;
  /** What was observed under it before. */
  readonly before: LastFalseObservation;
}

/** When each node last did not meet a policy's condition, by slot. A slot may get another node. */
interface LastFalseObservation {
  readonly nodes: (NodeId | undefined)[];
  readonly at: MonotonicMs[];
}

/** Evaluations between two yields to the event loop: a few milliseconds of work. */
const EVALUATIONS_PER_SLICE = 2_000;
/** Timer rows written in one transaction. */
const ROWS_PER_COMMIT_MAX = 20_000;

/** Creates an evaluator that has evaluated nothing yet. */
export function createRuleEvaluator(context: EvaluatorDeps): RuleEvaluator {
  const { remediationState } = context;
  const { records } = remediationState;
  /** By policy; empty until this process has evaluated trusted data. */
  const lastFalse = new Map<string, LastFalseObservation>();
  let lastEvaluated: { fleet: Fleet; sessionsAt: MonotonicMs | null } | null = null;

  function preparePass(policy: Policy, scope: EvaluationScope): PolicyPass {
    const { forMs, clearForMs } = policy.rule;
    const ages = context.observed.maxAgeOf(policy.rule);
    const gapMsMax = Math.max(...policySources(policy).map(ages));
    const before = lastFalse.get(policy.rule.name) ?? { nodes: [], at: [] };
    lastFalse.set(policy.rule.name, before);
    const dryRun = isDryRun(context.policies.activate(policy));
    return { policy, scope, ages, rule: { forMs, clearForMs, gapMsMax }, dryRun, before };
  }

  /** Returns the slots that were observed again since the last evaluation. */
  function slotsToEvaluate({ fleet, sessions }: Snapshot): number[] {
    const before = lastEvaluated;
    lastEvaluated = { fleet, sessionsAt: sessions?.settledAt ?? null };
    const all =
      before === null || before.fleet.settledAt !== fleet.settledAt || before.sessionsAt !== lastEvaluated.sessionsAt;
    const slots: number[] = [];
    for (let slot = 0; slot < fleet.slots; slot++) {
      if (fleet.ids[slot] === "") continue;
      // A walk that failed has shown the nodes of the pages before. A node that was never read has NaN in both columns.
      const isSame = (column: "listedAt" | "detailedAt") => Object.is(fleet[column][slot], before?.fleet[column][slot]);
      if (all || !isSame("listedAt") || !isSame("detailedAt")) slots.push(slot);
    }
    return slots;
  }

  /** Returns a node's timer, and whether it was observed to become unhealthy; null: the timer is unchanged. */
  function evaluateNode(
    { policy, scope, ages, rule, dryRun, before }: PolicyPass,
    node: NodeId,
    slot: number,
  ): NodeEvaluation | null {
    const { name } = policy.rule;
    const evaluation = evaluatePolicy(policy, scope.nodeAt(slot), ages, context.clock.monotonic());
    const timer = records.timer(name, node);
    const episode = episodeOf(name, node, dryRun);
    const clearFrozen = episode !== null && (episode.state === "acting" || episode.quarantine !== null);
    const { verdict, at, newest } = evaluation;
    const next = observeCondition(timer, { verdict, at, newest, now: remediationState.now() }, rule, { clearFrozen });
    const wasFalse = before.nodes[slot] === node && newest - before.at[slot]! <= rule.gapMsMax;
    if (verdict === "false") {
      before.nodes[slot] = node;
      before.at[slot] = newest;
    }
    return next === timer ? null : { timer: next, isOnset: timer.state === "inactive" && wasFalse };
  }

  /** The open episode of a policy on a node, also a suspended one. */
  function episodeOf(policy: string, node: NodeId, dryRun: boolean): Episode | null {
    const open = records.openEpisode(node, dryRun);
    return open?.policy === policy ? open : records.suspendedEpisode(policy, node, dryRun);
  }

  const write = (changes: readonly JournalChange[]) => {
    if (changes.length > 0) remediationState.record(changes);
  };

  /** Lets the timers of nodes that left the list lapse, and drops those of nodes whose id another node has. */
  function forgetRemovedNodes(replaced: ReadonlySet<NodeId>): JournalChange[] {
    return records.policiesWithTimers().flatMap((policy) =>
      [...records.timersOf(policy)].flatMap(([node, timer]) => {
        const isGone = context.observed.slotOf(node) === null;
        if (!isGone && !replaced.has(node)) return [];
        const next = isGone && hasEpisode(node, policy) ? markUnseen(timer) : INACTIVE;
        return next === timer ? [] : [setTimer(policy, node, next)];
      }),
    );
  }

  const hasEpisode = (node: NodeId, policy: string) =>
    [true, false].some((dryRun) => episodeOf(policy, node, dryRun) !== null);

  function setTimer(policy: string, node: NodeId, timer: Timer): JournalChange {
    records.setTimer(policy, node, timer);
    const row = toTimerRow(policy, node, timer, knownCreatedAt(context, node));
    return row === null ? { kind: "timer_gone", policy, node } : { kind: "timer", row };
  }

  return {
    async evaluate(replaced, note) {
      const { snapshot } = context.observed.latest!;
      const slots = slotsToEvaluate(snapshot);
      const scope = context.observed.scope();
      let changes: JournalChange[] = forgetRemovedNodes(replaced);
      let observedChanges = createObservedChanges();
      let evaluations = 0;
      const flush = () => {
        write([...changes, ...note(observedChanges)]);
        changes = [];
        observedChanges = createObservedChanges();
      };
      for (const policy of context.policies.all) {
        const pass = preparePass(policy, scope);
        const { name } = policy.rule;
        for (const slot of slots) {
          const node = snapshot.fleet.ids[slot]!;
          const before = records.timer(name, node).state;
          const evaluated = evaluateNode(pass, node, slot);
          if (evaluated !== null) {
            const { timer, isOnset } = evaluated;
            changes.push(setTimer(name, node, timer));
            // One that lapsed was counted when it fired first.
            if (timer.state === "firing" && before !== "firing" && before !== "lapsed")
              addNode(observedChanges.firing, name, node);
            if (isOnset) addNode(observedChanges.onsets, name, node);
          }
          evaluations++;
          if (evaluations % EVALUATIONS_PER_SLICE === 0) await yieldToEventLoop();
        }
        if (changes.length > ROWS_PER_COMMIT_MAX) flush();
      }
      flush();
    },
    markUntrusted() {
      lastFalse.clear();
      const changes: JournalChange[] = [];
      for (const policy of records.policiesWithTimers()) {
        for (const [node, timer] of [...records.timersOf(policy)]) {
          const next = markUntrusted(timer, remediationState.now());
          if (next === timer) continue;
          const change = setTimer(policy, node, next);
          if (next.state === "inactive") changes.push(change);
        }
      }
      write(changes);
    },
  };
}

interface NodeEvaluation {
  readonly timer: Timer;
  readonly isOnset: boolean;
}

const createObservedChanges = () => ({ firing: new Map<string, NodeId[]>(), onsets: new Map<string, NodeId[]>() });

function addNode(nodes: Map<string, NodeId[]>, policy: string, node: NodeId): void {
  const known = nodes.get(policy);
  if (known === undefined) nodes.set(policy, [node]);
  else known.push(node);
}
