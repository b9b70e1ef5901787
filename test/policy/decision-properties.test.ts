import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MODES } from "../../src/model/policy/policy.ts";
import type { Blocker } from "../../src/model/remediation/episode.ts";
import { decide, GUARDS, HOLD_REASON_ROWS, HOLD_REASONS } from "../../src/policy/decision.ts";
import { steps } from "../harness/policies.ts";
import { propertyRuns } from "../harness/run-length.ts";
import { buildEvaluation, firingTimer } from "./guard-case.ts";
import { CAUSED_REASONS, EXCLUSIVE_REASONS, guardCase, type Reason } from "./guards/hold-reasons.ts";

const PROPERTY_RUNS = propertyRuns(1_000);
/** Number of runs, high enough for rare decisions to act to occur. */
const COVERING_RUNS = { numRuns: 1_000 };

/** Any of the reasons, but of each set of alternatives one at most. */
const someReasons: fc.Arbitrary<readonly Reason[]> = fc
  .tuple(
    fc.subarray([...CAUSED_REASONS]),
    fc.array(fc.nat(), { minLength: EXCLUSIVE_REASONS.length, maxLength: EXCLUSIVE_REASONS.length }),
  )
  .map(([all, picks]) =>
    all.filter((reason) => {
      const index = EXCLUSIVE_REASONS.findIndex((each) => each.includes(reason));
      const present = EXCLUSIVE_REASONS[index]?.filter((each) => all.includes(each)) ?? [reason];
      return index < 0 || present[picks[index]! % present.length] === reason;
    }),
  );

const decideWith = (all: readonly Reason[], spec = {}) => {
  const { candidate, facts } = guardCase(all, spec);
  return decide(candidate, facts);
};

const reasonsGiven = (all: readonly Reason[], spec = {}) =>
  new Set(decideWith(all, spec).blockers.map(({ reason }) => reason));

describe("every reason to hold", () => {
  test.each(CAUSED_REASONS)("%s alone holds the node and is the only reason reported", (reason) => {
    const { verdict, blockers } = decideWith([reason]);
    expect(verdict).toBe("hold");
    expect(blockers.map((blocker) => blocker.reason)).toEqual([reason]);
    expect(blockers[0]!.detail).not.toBe("");
  });

  test("has a case in this test", () => {
    expect(new Set(CAUSED_REASONS)).toEqual(new Set(HOLD_REASONS));
  });

  test("is reported if several apply, and no other reason is", () => {
    fc.assert(
      fc.property(someReasons, (all) => {
        expect(reasonsGiven(all)).toEqual(new Set(all));
      }),
      PROPERTY_RUNS,
    );
  });

  test("is reported as its guard returns it", () => {
    fc.assert(
      fc.property(someReasons, (all) => {
        const { candidate, facts } = guardCase(all);
        const { blockers } = decide(candidate, facts);
        for (const alone of GUARDS.flatMap((guard): readonly Blocker[] => guard.check(candidate, facts)))
          expect(blockers).toContainEqual(alone);
      }),
      PROPERTY_RUNS,
    );
  });
});

describe("a node is acted on", () => {
  test("if nothing holds it", () => {
    expect(decideWith([])).toMatchObject({ verdict: "act", blockers: [] });
  });

  test("only if nothing holds it, `when` is true, the timer is firing and no step is in progress", () => {
    const timers = fc.constantFrom("inactive" as const, "pending" as const, "firing" as const);
    const verdicts = fc.constantFrom("true" as const, "false" as const, "unknown" as const);
    const episodes = fc.constantFrom(null, "firing" as const, "acting" as const, "recovering" as const);
    const few = fc.oneof(fc.constant<readonly Reason[]>([]), someReasons);
    let acts = 0;
    fc.assert(
      fc.property(few, timers, verdicts, episodes, fc.constantFrom(...MODES), (all, state, verdict, episode, mode) => {
        const { candidate, facts } = guardCase(all);
        const decision = decide(
          {
            ...candidate,
            active: { ...candidate.active, mode },
            approved: true,
            timer: { ...firingTimer(), state },
            evaluation: buildEvaluation(verdict),
            episode:
              episode === null
                ? candidate.episode
                : { ...guardCase(["backoff"]).candidate.episode!, state: episode, retryAt: null },
          },
          facts,
        );
        if (decision.verdict !== "act") return;
        acts++;
        expect(decision.blockers).toEqual([]);
        expect([state, verdict]).toEqual(["firing", "true"]);
        expect([null, "firing"]).toContain(episode);
      }),
      COVERING_RUNS,
    );
    expect(acts).toBeGreaterThan(10);
  });

  test("never because of an additional blocker", () => {
    fc.assert(
      fc.property(someReasons, someReasons, (some, more) => {
        const both = [...new Set([...some, ...more])];
        const isMixed = EXCLUSIVE_REASONS.some((each) => each.filter((reason) => both.includes(reason)).length > 1);
        fc.pre(!isMixed);
        if (decideWith(some).verdict === "hold") expect(decideWith(both).verdict).toBe("hold");
        expect([...reasonsGiven(some)].filter((reason) => !reasonsGiven(both).has(reason))).toEqual([]);
      }),
      propertyRuns(300),
    );
  });
});

test("a notify step is held only by unknown data and repetition", () => {
  const doubts: readonly Reason[] = [
    ...(["journal", "verdict_unknown", "other_episode", "cooldown", "retry_wait", "retry_limit", "backoff"] as const),
    ...EXCLUSIVE_REASONS.at(-1)!,
  ];
  const notice = { steps: [steps.notify] };
  fc.assert(
    fc.property(someReasons, (all) => {
      expect(reasonsGiven(all, notice)).toEqual(new Set(all.filter((reason) => doubts.includes(reason))));
    }),
    PROPERTY_RUNS,
  );
});

test("every guard returns only the reasons in its row, and each reason documents how its hold ends", () => {
  for (const reason of CAUSED_REASONS) {
    const { candidate, facts } = guardCase([reason]);
    for (const guard of GUARDS) {
      for (const { reason: given } of guard.check(candidate, facts)) expect(guard.reasons).toHaveProperty(given);
    }
  }
  for (const row of Object.values(HOLD_REASON_ROWS)) expect(row.ends).toMatch(/^(?:automatically|with )/);
});
