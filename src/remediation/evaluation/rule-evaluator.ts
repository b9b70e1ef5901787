import type { Episode } from "../../model/remediation/episode.ts";
import type { Change } from "../../model/remediation/journal.ts";
import type { NodeId } from "../../model/node.ts";
import type { Fleet, Snapshot } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { isShadow } from "../../policy/facts.ts";
import { type Policy, sourcesOf } from "../../policy/policy.ts";
import { createScope, type Scope } from "../../policy/cel/field-values.ts";
import { distrusted, INACTIVE, observe, rowOf, type Timer, type TimerRule, unseen } from "../../policy/timers/timer.ts";
import { judge, type MaxAgeOf } from "../../policy/timers/verdict.ts";
import { breath } from "../event-loop.ts";
import { knownCreatedAt } from "../node-identity.ts";
import type { Situation } from "./fleet-health.ts";
import { active, maxAgeOf, slotOf, type Ward } from "../context.ts";

/** Runs the timers of all policies over what is seen. */
export interface Judging {
  /**
   * Looks at every node of which there is something new. `replaced`: nodes whose id another node has by now; their timers
   * begin anew. What `note` returns is written in the same transaction as the timers that it was called for. Works in slices.
   */
  look(replaced: ReadonlySet<NodeId>, note: Situation["note"]): Promise<void>;
  /** The fleet's data can't be trusted: what is pending starts from zero once it can. */
  distrust(): void;
}

/** One policy, and how it looks at a snapshot. */
interface Course {
  readonly policy: Policy;
  readonly scope: Scope;
  readonly ages: MaxAgeOf;
  readonly rule: TimerRule;
  readonly shadow: boolean;
  /** What was seen under it before. */
  readonly before: LastFalse;
}

/** When each node was last observed not to meet a policy's condition, by slot. A slot may get another node. */
interface LastFalse {
  readonly nodes: (NodeId | undefined)[];
  readonly at: MonotonicMs[];
}

/** Looks between two breaths: some milliseconds of work. */
const LOOKS_PER_SLICE = 2_000;
/** Timer rows written in one transaction. */
const ROWS_PER_COMMIT_MAX = 20_000;

/** A judging over what the ward sees. */
export function createJudging(ward: Ward): Judging {
  const { books } = ward;
  const { casebook } = books;
  /** By policy; empty where this process has looked at nothing, or trusts nothing that it saw. */
  const lastFalse = new Map<string, LastFalse>();
  let seen: { fleet: Fleet; sessionsAt: MonotonicMs | null } | null = null;

  function courseOf(policy: Policy, scope: Scope): Course {
    const { forMs, clearForMs } = policy.rule;
    const ages = maxAgeOf(ward, policy.rule);
    const gapMsMax = Math.max(...sourcesOf(policy).map(ages));
    const before = lastFalse.get(policy.rule.name) ?? { nodes: [], at: [] };
    lastFalse.set(policy.rule.name, before);
    const shadow = isShadow(active(ward, policy));
    return { policy, scope, ages, rule: { forMs, clearForMs, gapMsMax }, shadow, before };
  }

  /** The slots of which something is new since the look before. */
  function slotsToLookAt({ fleet, sessions }: Snapshot): number[] {
    const before = seen;
    seen = { fleet, sessionsAt: sessions?.settledAt ?? null };
    const all = before === null || before.fleet.settledAt !== fleet.settledAt || before.sessionsAt !== seen.sessionsAt;
    const slots: number[] = [];
    for (let slot = 0; slot < fleet.slots; slot++) {
      if (fleet.ids[slot] === "") continue;
      // A detail that was never read is NaN, before and now.
      if (all || !Object.is(fleet.detailedAt[slot], before.fleet.detailedAt[slot])) slots.push(slot);
    }
    return slots;
  }

  /** The timer of a node after a look, and whether it was observed to go bad; null: the timer is as it was. */
  function lookAt({ policy, scope, ages, rule, shadow, before }: Course, node: NodeId, slot: number): Looked | null {
    const { name } = policy.rule;
    const judgement = judge(policy, scope.subject(slot), ages, ward.clock.monotonic());
    const timer = casebook.timer(name, node);
    const episode = episodeOf(name, node, shadow);
    const clearFrozen = episode !== null && (episode.state === "acting" || episode.quarantine !== null);
    const { verdict, at, newest } = judgement;
    const next = observe(timer, { verdict, at, newest, now: books.now() }, rule, { clearFrozen });
    const wasFalse = before.nodes[slot] === node && newest - before.at[slot]! <= rule.gapMsMax;
    if (verdict === "false") {
      before.nodes[slot] = node;
      before.at[slot] = newest;
    }
    return next === timer ? null : { timer: next, isOnset: timer.state === "inactive" && wasFalse };
  }

  /** The open episode of a policy on a node, also a suspended one. */
  function episodeOf(policy: string, node: NodeId, shadow: boolean): Episode | null {
    const open = casebook.open(node, shadow);
    return open?.policy === policy ? open : casebook.suspended(policy, node, shadow);
  }

  const write = (changes: readonly Change[]) => {
    if (changes.length > 0) books.record(changes);
  };

  /** Takes back the timers of nodes that left the fleet, and drops those of nodes whose id another node has. */
  function forgetGone(replaced: ReadonlySet<NodeId>): Change[] {
    return casebook.timedPolicies().flatMap((policy) =>
      [...casebook.timersOf(policy)].flatMap(([node, timer]) => {
        const isGone = slotOf(ward, node) === null;
        if (!isGone && !replaced.has(node)) return [];
        const next = isGone && hasEpisode(node, policy) ? unseen(timer) : INACTIVE;
        return next === timer ? [] : [setTimer(policy, node, next)];
      }),
    );
  }

  const hasEpisode = (node: NodeId, policy: string) =>
    [true, false].some((shadow) => episodeOf(policy, node, shadow) !== null);

  function setTimer(policy: string, node: NodeId, timer: Timer): Change {
    casebook.setTimer(policy, node, timer);
    const row = rowOf(policy, node, timer, knownCreatedAt(ward, node));
    return row === null ? { kind: "timer_gone", policy, node } : { kind: "timer", row };
  }

  return {
    async look(replaced, note) {
      const { snapshot } = ward.view!;
      const slots = slotsToLookAt(snapshot);
      const scope = createScope(snapshot, ward.client.serviceTime);
      let changes: Change[] = forgetGone(replaced);
      let news = createNews();
      let looks = 0;
      const flush = () => {
        write([...changes, ...note(news)]);
        changes = [];
        news = createNews();
      };
      for (const policy of ward.policies) {
        const course = courseOf(policy, scope);
        const { name } = policy.rule;
        for (const slot of slots) {
          const node = snapshot.fleet.ids[slot]!;
          const before = casebook.timer(name, node).state;
          const looked = lookAt(course, node, slot);
          if (looked !== null) {
            const { timer, isOnset } = looked;
            changes.push(setTimer(name, node, timer));
            // One that lapsed was counted when it fired first.
            if (timer.state === "firing" && before !== "firing" && before !== "lapsed") addTo(news.firing, name, node);
            if (isOnset) addTo(news.onsets, name, node);
          }
          looks++;
          if (looks % LOOKS_PER_SLICE === 0) await breath();
        }
        if (changes.length > ROWS_PER_COMMIT_MAX) flush();
      }
      flush();
    },
    distrust() {
      lastFalse.clear();
      const changes: Change[] = [];
      for (const policy of casebook.timedPolicies()) {
        for (const [node, timer] of [...casebook.timersOf(policy)]) {
          const next = distrusted(timer, books.now());
          if (next === timer) continue;
          const change = setTimer(policy, node, next);
          if (next.state === "inactive") changes.push(change);
        }
      }
      write(changes);
    },
  };
}

interface Looked {
  readonly timer: Timer;
  readonly isOnset: boolean;
}

const createNews = () => ({ firing: new Map<string, NodeId[]>(), onsets: new Map<string, NodeId[]>() });

function addTo(nodes: Map<string, NodeId[]>, policy: string, node: NodeId): void {
  const known = nodes.get(policy);
  if (known === undefined) nodes.set(policy, [node]);
  else known.push(node);
}
