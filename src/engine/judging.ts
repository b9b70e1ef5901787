import type { Change } from "../model/journal.ts";
import type { NodeId } from "../model/node.ts";
import type { Fleet, Snapshot } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";
import { isShadow } from "../policy/facts.ts";
import { type Policy, sourcesOf } from "../policy/policy.ts";
import { createScope, type Scope } from "../policy/scope.ts";
import { INACTIVE, observe, rowOf, type Timer, type TimerRule, untrusted } from "../policy/timer.ts";
import { judge, type MaxAgeOf } from "../policy/verdict.ts";
import { breath } from "./breath.ts";
import { active, maxAgeOf, slotOf, type Ward } from "./ward.ts";

/** What a look at the fleet brought. */
export interface Judged {
  /** Nodes that began to fire, by policy. */
  readonly begun: ReadonlyMap<string, readonly NodeId[]>;
}

/** Runs the timers of all policies over what is seen. */
export interface Judging {
  /** Looks at every node of which there is something new. Works in slices. */
  look(): Promise<Judged>;
  /** Sight is broken: what is pending starts from zero once it returns. */
  distrust(): void;
}

/** One policy, and how it looks at a snapshot. */
interface Course {
  readonly policy: Policy;
  readonly scope: Scope;
  readonly ages: MaxAgeOf;
  readonly rule: TimerRule;
  readonly shadow: boolean;
}

/** Looks between two breaths: some milliseconds of work. */
const LOOKS_PER_SLICE = 2_000;
/** Timer rows written in one transaction. */
const ROWS_PER_COMMIT_MAX = 20_000;

/** A judging over what the ward sees. */
export function createJudging(ward: Ward): Judging {
  const { books } = ward;
  const { casebook } = books;
  let seen: { fleet: Fleet; sessionsAt: MonotonicMs | null } | null = null;

  function courseOf(policy: Policy, scope: Scope): Course {
    const { forMs, clearForMs } = policy.rule;
    const ages = maxAgeOf(ward, policy.rule);
    const gapMsMax = Math.max(...sourcesOf(policy).map(ages));
    return { policy, scope, ages, rule: { forMs, clearForMs, gapMsMax }, shadow: isShadow(active(ward, policy)) };
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

  /** The timer of a node after a look; null: it is as it was. */
  function lookAt({ policy, scope, ages, rule, shadow }: Course, node: NodeId, slot: number): Timer | null {
    const { name } = policy.rule;
    const judgement = judge(policy, scope.subject(slot), ages, ward.clock.monotonic());
    const timer = casebook.timer(name, node);
    const episode = casebook.open(node, shadow);
    const isOurs = episode?.policy === name;
    const clearFrozen = isOurs && (episode.state === "acting" || episode.quarantine !== null);
    const { verdict, at, newest } = judgement;
    const next = observe(timer, { verdict, at, newest, now: books.now() }, rule, { clearFrozen });
    return next === timer ? null : next;
  }

  const write = (changes: readonly Change[]) => {
    if (changes.length > 0) books.record(changes);
  };

  /** A node that is in the fleet no more has no timer, unless its episode waits for it to come back. */
  function forgetGone(): Change[] {
    return casebook
      .timedPolicies()
      .flatMap((policy) =>
        [...casebook.timersOf(policy).keys()]
          .filter((node) => slotOf(ward, node) === null && !hasEpisode(node, policy))
          .map((node) => dropTimer(policy, node)),
      );
  }

  const hasEpisode = (node: NodeId, policy: string) =>
    [true, false].some((shadow) => casebook.open(node, shadow)?.policy === policy);

  function dropTimer(policy: string, node: NodeId): Change {
    casebook.setTimer(policy, node, INACTIVE);
    return { kind: "timer_gone", policy, node };
  }

  return {
    async look() {
      const { snapshot } = ward.view!;
      const begun = new Map<string, NodeId[]>();
      const slots = slotsToLookAt(snapshot);
      const scope = createScope(snapshot, ward.client.serviceTime);
      let changes: Change[] = forgetGone();
      let looks = 0;
      for (const policy of ward.policies) {
        const course = courseOf(policy, scope);
        const { name } = policy.rule;
        const firing: NodeId[] = [];
        for (const slot of slots) {
          const node = snapshot.fleet.ids[slot]!;
          const before = casebook.timer(name, node).state;
          const timer = lookAt(course, node, slot);
          if (timer !== null) {
            casebook.setTimer(name, node, timer);
            const row = rowOf(name, node, timer);
            changes.push(row === null ? { kind: "timer_gone", policy: name, node } : { kind: "timer", row });
            if (timer.state === "firing" && before !== "firing") firing.push(node);
          }
          looks++;
          if (looks % LOOKS_PER_SLICE === 0) await breath();
        }
        if (firing.length > 0) begun.set(name, firing);
        if (changes.length > ROWS_PER_COMMIT_MAX) {
          write(changes);
          changes = [];
        }
      }
      write(changes);
      return { begun };
    },
    distrust() {
      const changes: Change[] = [];
      for (const policy of casebook.timedPolicies()) {
        for (const [node, timer] of [...casebook.timersOf(policy)]) {
          const next = untrusted(timer);
          if (next === timer) continue;
          casebook.setTimer(policy, node, next);
          if (next.state === "inactive") changes.push({ kind: "timer_gone", policy, node });
        }
      }
      write(changes);
    },
  };
}
