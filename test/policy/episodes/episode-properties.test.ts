import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action, Episode, OPEN_STATES } from "../../../src/model/remediation/episode.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import {
  afterClearing,
  afterFailure,
  afterLimit,
  afterLook,
  afterLoss,
  afterRefusal,
  afterSending,
  afterStep,
  EPISODE_MOVES,
  nextRung,
  proven,
  resumed,
  unlisted,
} from "../../../src/policy/episodes/episode.ts";
import { rebootOffline, steps } from "../../harness/policies.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { NOON, openEpisode } from "../guard-case.ts";

const looks = NODE_STATUSES.map((status) => `look ${status}`);

/** What may become of an episode as it stands; what is told more often happens more often. */
const fates: Readonly<Record<(typeof OPEN_STATES)[number], readonly string[]>> = {
  firing: ["send", "send", "send", "send", "send", "in doubt", "failed", "limited", "refused", "vanish", ...looks],
  acting: [
    "verified",
    "ineffective",
    "ineffective",
    "look quarantined",
    "look quarantined",
    "in_doubt",
    "vanish",
    ...looks,
  ],
  recovering: ["relapse", "relapse", "relapse", "vanish", "clear", ...looks],
  probation: ["relapse", "relapse", "relapse", "vanish", "vanish", "clear", ...looks],
  quarantined: ["outlast", "outlast", "outlast", "vanish", ...looks],
  suspended: ["return", "return", "proven", "proven", "clear", "outlast", "step lost"],
};
const draws = fc.array(fc.record({ draw: fc.nat(), passedMs: fc.nat({ max: 20 * MINUTE_MS }) }), {
  maxLength: 60,
  size: "max",
});
const rules = fc
  .array(fc.constantFrom(...Object.values(steps)), { minLength: 1, maxLength: 6 })
  .map((ladder) => rebootOffline({ steps: ladder }));

/** An episode as it moves along, with what was done. */
interface Course {
  episode: Episode;
  /** The action that is under way. */
  action: Action | null;
  readonly sent: number[];
  now: number;
}

/** What the engine does with an episode, event by event. */
function happen(course: Course, event: string, rule: PolicyRule): void {
  const { episode, now } = course;
  const { state } = episode;
  if (episode.closedAt !== null) return;
  if (state === "suspended") {
    if (event === "step lost" && course.action !== null) {
      course.episode = afterLoss(episode, course.action, now);
      course.action = null;
    } else if (event === "return") course.episode = resumed(episode, course.action !== null, now);
    else if (event === "proven" && isLapsed(course)) course.episode = proven(episode, rule, now);
    else if (event === "clear" && isLapsed(course)) course.episode = afterClearing(episode, now);
    else course.now += 3 * HOUR_MS;
    return;
  }
  if (event === "outlast") course.now = Math.max(now, episode.quarantine?.endsAt ?? now);
  else if (event === "vanish") course.episode = unlisted(episode, now);
  else if (event.startsWith("look ")) {
    const status = NODE_STATUSES.find((each) => event.endsWith(` ${each}`))!;
    course.episode = afterLook(episode, status, now);
  } else if (state === "acting") end(course, event, rule);
  else if (state === "firing") send(course, event, rule);
  else if (event === "relapse") course.episode = nextRung(episode, rule, now);
  else if (event === "clear" && episode.quarantine === null) course.episode = afterClearing(episode, now);
}

/** Whether nothing of a suspended episode is under way: it then waits for its timer. */
const isLapsed = ({ episode, action }: Course) => action === null && episode.quarantine === null;

function end(course: Course, event: string, rule: PolicyRule): void {
  if (event !== "verified" && event !== "ineffective" && event !== "in_doubt") return;
  course.episode = afterStep(course.episode, course.action!, event, rule, course.now);
  course.action = null;
}

function send(course: Course, event: string, rule: PolicyRule): void {
  const { episode, now } = course;
  // Throws where there is no such step: firing, there is always one.
  const step = rule.steps[episode.step]!;
  if (event === "send" && step.action === "notify") course.episode = nextRung(episode, rule, now);
  if (step.action === "notify") return;
  if (event === "failed") course.episode = afterFailure(episode, now);
  if (event === "limited") course.episode = afterLimit(episode, MINUTE_MS, now);
  if (event === "refused") course.episode = afterRefusal(episode, rule, now);
  if (event !== "send" && event !== "in doubt") return;
  course.sent.push(episode.step);
  course.action = actionOf(100 + course.sent.length, episode.id, {
    step: episode.step,
    sentAt: now,
    request:
      step.action === "quarantine"
        ? { kind: "quarantine", reason: "", durationMinutes: step.durationMs / MINUTE_MS }
        : { kind: "reboot", force: false },
  });
  course.episode = afterSending(episode, course.action, null, now);
}

const ADVANCING = ["ineffective", "relapse", "proven", "step lost"];

describe("whatever becomes of the steps", () => {
  const runs = { numRuns: 1_500 };

  const follow = (
    rule: PolicyRule,
    all: readonly { readonly draw: number; readonly passedMs: number }[],
    check: (before: Episode, course: Course, event: string) => void,
  ): Course => {
    const course: Course = { episode: openEpisode({ step: 0 }), action: null, sent: [], now: NOON };
    for (const { draw, passedMs } of all) {
      course.now += passedMs;
      const before = course.episode;
      const possible = before.closedAt === null ? fates[before.state as keyof typeof fates] : ["send"];
      const event = possible[draw % possible.length]!;
      happen(course, event, rule);
      check(before, course, event);
    }
    return course;
  };

  test("no episode takes more steps than its ladder has, nor one of them twice, nor an earlier one after a later", () => {
    let most = 0;
    fc.assert(
      fc.property(rules, draws, (rule, all) => {
        const { sent, episode } = follow(rule, all, () => {});
        expect(sent).toEqual([...new Set(sent)].sort((a, b) => a - b));
        expect(sent.every((step) => step < rule.steps.length)).toBe(true);
        expect(episode.acted).toBe(sent.length);
        most = Math.max(most, sent.length);
      }),
      runs,
    );
    expect(most).toBeGreaterThanOrEqual(4);
  });

  test("only an ineffective or lost step, a relapse, or a notice that was sent leads to the next", () => {
    fc.assert(
      fc.property(rules, draws, (rule, all) => {
        follow(rule, all, (before, { episode }, event) => {
          if (episode.step === before.step || episode.step >= rule.steps.length) return;
          expect(episode.step).toBe(before.step + 1);
          const wasNotice = event === "send" && rule.steps[before.step]!.action === "notify";
          expect(wasNotice || ADVANCING.includes(event)).toBe(true);
        });
      }),
      runs,
    );
  });

  test("an episode stands where its state says", () => {
    fc.assert(
      fc.property(rules, draws, (rule, all) => {
        follow(rule, all, (_, { episode, action }) => {
          const { state, quarantine, closedAt, step } = episode;
          if (state === "firing") expect(step).toBeLessThan(rule.steps.length);
          if (state === "quarantined") expect(quarantine).not.toBeNull();
          if (state === "probation") expect(quarantine).toBeNull();
          if (state === "acting") expect(action).not.toBeNull();
          if (closedAt !== null) expect(quarantine).toBeNull();
          expect(closedAt !== null).toBe(["healed", "cleared", "given_up", "freed"].includes(state));
        });
      }),
      runs,
    );
  });

  test("every change of state is a move of the table", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(rules, draws, (rule, all) => {
        follow(rule, all, (before, { episode }) => {
          if (episode.state === before.state) return;
          expect(Object.values(EPISODE_MOVES[before.state as keyof typeof EPISODE_MOVES])).toContain(episode.state);
          seen.add(`${before.state} ${episode.state}`);
        });
      }),
      runs,
    );
    for (const way of ["firing suspended", "suspended firing", "suspended acting", "suspended healed"]) {
      expect(seen).toContain(way);
    }
  });

  test("a closed episode stays as it is", () => {
    fc.assert(
      fc.property(rules, draws, (rule, all) => {
        follow(rule, all, (before, { episode }) => {
          if (before.closedAt !== null) expect(episode).toBe(before);
        });
      }),
      runs,
    );
  });
});
