import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import { NODE_STATUSES } from "../../../src/model/node.ts";
import type { Action, Episode, OPEN_STATES } from "../../../src/model/remediation/episode.ts";
import {
  advanceStep,
  clearEpisode,
  endSteps,
  markUnlisted,
  observeAfterStep,
  observeStatus,
  recordRateLimited,
  recordSent,
  recordStepLost,
  recordStepResult,
  recordUnsent,
  refireEpisode,
  resumeEpisode,
} from "../../../src/policy/episodes/episode.ts";
import { EPISODE_TRANSITIONS } from "../../../src/policy/episodes/episode-states.ts";
import { rebootOffline, steps } from "../../harness/policies.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { NOON, openEpisode } from "../guard-case.ts";

const OBSERVATION_EVENTS = NODE_STATUSES.map((status) => `observe ${status}`);

/** The possible events in each state. An event that is listed several times is more likely. */
const POSSIBLE_EVENTS: Readonly<Record<(typeof OPEN_STATES)[number], readonly string[]>> = {
  firing: [
    "send",
    "send",
    "send",
    "send",
    "send",
    "in doubt",
    "failed",
    "limited",
    "refused",
    "vanish",
    ...OBSERVATION_EVENTS,
  ],
  acting: [
    "verified",
    "ineffective",
    "ineffective",
    "ineffective and down",
    "observe quarantined",
    "observe quarantined",
    "in_doubt",
    "vanish",
    ...OBSERVATION_EVENTS,
  ],
  recovering: ["relapse", "relapse", "relapse", "vanish", "clear", ...OBSERVATION_EVENTS],
  probation: ["relapse", "relapse", "relapse", "vanish", "vanish", "clear", ...OBSERVATION_EVENTS],
  quarantined: ["outlast", "outlast", "outlast", "vanish", ...OBSERVATION_EVENTS],
  suspended: ["return", "return", "proven", "proven", "clear", "outlast", "step lost"],
};
const draws = fc.array(fc.record({ draw: fc.nat(), passedMs: fc.nat({ max: 20 * MINUTE_MS }) }), {
  maxLength: 60,
  size: "max",
});
const specs = fc
  .array(fc.constantFrom(...Object.values(steps)), { minLength: 1, maxLength: 6 })
  .map((steps) => rebootOffline({ steps }));

/** An episode as it moves along, with what was done. */
interface EpisodeRun {
  episode: Episode;
  /** The action that is under way. */
  action: Action | null;
  readonly sent: number[];
  now: number;
}

/** Returns the engine's changes to an episode, event by event. */
function applyEvent(course: EpisodeRun, event: string, spec: PolicySpec): void {
  const { episode, now } = course;
  const { state } = episode;
  if (episode.closedAt !== null) return;
  if (state === "suspended") {
    if (event === "step lost" && course.action !== null) {
      course.episode = recordStepLost(episode, course.action, now);
      course.action = null;
    } else if (event === "return") course.episode = resumeEpisode(episode, course.action !== null, now);
    else if (event === "proven" && isWaitingForTimer(course)) course.episode = refireEpisode(episode, spec, now);
    else if (event === "clear" && isWaitingForTimer(course)) course.episode = clearEpisode(episode, now);
    else course.now += 3 * HOUR_MS;
    return;
  }
  if (event === "outlast") course.now = Math.max(now, episode.quarantine?.endsAt ?? now);
  else if (event === "vanish") course.episode = markUnlisted(episode, now);
  else if (event.startsWith("observe ")) {
    const status = NODE_STATUSES.find((each) => event.endsWith(` ${each}`))!;
    course.episode = observeStatus(episode, status, now);
  } else if (state === "acting") end(course, event, spec);
  else if (state === "firing") send(course, event, spec);
  else if (event === "relapse") course.episode = advanceStep(episode, spec, now);
  else if (event === "clear" && episode.quarantine === null) course.episode = clearEpisode(episode, now);
}

/** Returns whether nothing of a suspended episode is under way: it then waits for its timer. */
const isWaitingForTimer = ({ episode, action }: EpisodeRun) => action === null && episode.quarantine === null;

function end(course: EpisodeRun, event: string, spec: PolicySpec): void {
  const [result, isDown] = event === "ineffective and down" ? ["ineffective", true] : [event, false];
  if (result !== "verified" && result !== "ineffective" && result !== "in_doubt") return;
  const observed = observeAfterStep(course.episode, course.action!, isDown ? "offline" : "online", course.now);
  course.episode = recordStepResult(observed, course.action!, result, spec, course.now);
  course.action = null;
}

function send(course: EpisodeRun, event: string, spec: PolicySpec): void {
  const { episode, now } = course;
  // Throws where there is no such step: firing, there is always one.
  const step = spec.steps[episode.step]!;
  if (event === "send" && step.action === "notify") course.episode = advanceStep(episode, spec, now);
  if (step.action === "notify") return;
  if (event === "failed") course.episode = recordUnsent(episode, now);
  if (event === "limited") course.episode = recordRateLimited(episode, MINUTE_MS, spec, now);
  if (event === "refused") course.episode = endSteps(episode, spec, now);
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
  course.episode = recordSent(episode, course.action, null, now);
}

const ADVANCING_EVENTS = ["ineffective", "ineffective and down", "relapse", "proven", "step lost"];

describe("in any sequence of events", () => {
  const runs = propertyRuns(1_500);

  const follow = (
    spec: PolicySpec,
    all: readonly { readonly draw: number; readonly passedMs: number }[],
    check: (before: Episode, course: EpisodeRun, event: string) => void,
  ): EpisodeRun => {
    const course: EpisodeRun = { episode: openEpisode({ step: 0 }), action: null, sent: [], now: NOON };
    for (const { draw, passedMs } of all) {
      course.now += passedMs;
      const before = course.episode;
      const possible =
        before.closedAt === null ? POSSIBLE_EVENTS[before.state as keyof typeof POSSIBLE_EVENTS] : ["send"];
      const event = possible[draw % possible.length]!;
      applyEvent(course, event, spec);
      check(before, course, event);
    }
    return course;
  };

  test("an episode takes each step of its policy at most once, in order", () => {
    let most = 0;
    fc.assert(
      fc.property(specs, draws, (spec, all) => {
        const { sent, episode } = follow(spec, all, () => {});
        expect(sent).toEqual([...new Set(sent)].sort((a, b) => a - b));
        expect(sent.every((step) => step < spec.steps.length)).toBe(true);
        expect(episode.acted).toBe(sent.length);
        most = Math.max(most, sent.length);
      }),
      runs,
    );
    expect(most).toBeGreaterThanOrEqual(3);
  });

  test("only an ineffective or lost step, a relapse or a sent notification leads to the next step", () => {
    fc.assert(
      fc.property(specs, draws, (spec, all) => {
        follow(spec, all, (before, { episode }, event) => {
          if (episode.step === before.step || episode.step >= spec.steps.length) return;
          expect(episode.step).toBe(before.step + 1);
          const wasNotice = event === "send" && spec.steps[before.step]!.action === "notify";
          expect(wasNotice || ADVANCING_EVENTS.includes(event)).toBe(true);
        });
      }),
      runs,
    );
  });

  test("the fields of an episode match its state", () => {
    fc.assert(
      fc.property(specs, draws, (spec, all) => {
        follow(spec, all, (_, { episode, action }) => {
          const { state, quarantine, closedAt, step } = episode;
          if (state === "firing") expect(step).toBeLessThan(spec.steps.length);
          if (state === "quarantined") expect(quarantine).not.toBeNull();
          if (state === "probation") expect(quarantine).toBeNull();
          if (state === "acting") expect(action).not.toBeNull();
          if (closedAt !== null) expect(quarantine).toBeNull();
          if (state === "given_up") expect(episode.downSince ?? null).toBeNull();
          expect(closedAt !== null).toBe(["healed", "cleared", "given_up", "freed"].includes(state));
        });
      }),
      runs,
    );
  });

  test("every change of state is in the transition table", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(specs, draws, (spec, all) => {
        follow(spec, all, (before, { episode }) => {
          if (episode.state === before.state) return;
          const possible = Object.values(EPISODE_TRANSITIONS).filter(({ from }) =>
            from.some((state) => state === before.state),
          );
          expect(possible.map(({ to }) => to)).toContain(episode.state);
          seen.add(`${before.state} ${episode.state}`);
        });
      }),
      // Enough that rare transitions occur.
      { numRuns: 1_500 },
    );
    for (const way of ["firing suspended", "suspended firing", "suspended acting", "suspended healed"]) {
      expect(seen).toContain(way);
    }
  });

  test("a closed episode does not change", () => {
    fc.assert(
      fc.property(specs, draws, (spec, all) => {
        follow(spec, all, (before, { episode }) => {
          if (before.closedAt !== null) expect(episode).toBe(before);
        });
      }),
      runs,
    );
  });
});
