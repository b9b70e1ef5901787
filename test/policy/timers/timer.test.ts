import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import {
  applyLongerFor,
  INACTIVE,
  markUnseen,
  markUntrusted,
  type Observation,
  observeCondition,
  restoreTimer,
  type Timer,
  toTimerRow,
} from "../../../src/policy/timer.ts";
import { durations, EPOCH, firingTimer, observation, observeAll, timerText } from "./minute-observations.ts";

describe("a timer", () => {
  test.each([
    ["the first true makes it pending", "t", "pending 0m 0m"],
    ["it stays pending until `for` is over", "t".repeat(15), "pending 14m 0m"],
    ["it fires with the observation that completes `for`", "t".repeat(16), "firing 15m 0m"],
    ["a false makes a pending timer inactive", `${"t".repeat(15)}f`, "inactive 0m 0m"],
    ["it then starts again from zero", `${"t".repeat(15)}ftt`, "pending 1m 0m"],
    ["an unknown stops it, and the gap does not count", `${"t".repeat(10)}utttt`, "pending 12m 0m"],
    ["a gap of at most max_age counts", "t....t", "pending 5m 0m"],
    ["a longer gap neither counts nor resets it", "ttt.....t", "pending 2m 0m"],
    ["it continues to count after a longer gap", "ttt.....ttt", "pending 4m 0m"],
    ["unknown and false leave it inactive", "uuffuu", "inactive 0m 0m"],
  ])("%s", (_, verdicts, expected) => {
    expect(timerText(observeAll(verdicts))).toBe(expected);
  });

  test.each([
    ["the first false does not clear it", "f", "firing 0m 0m"],
    ["it stays firing until `clear_for` is over", "f".repeat(10), "firing 0m 9m"],
    ["it ends with the observation that completes `clear_for`", "f".repeat(11), "inactive 0m 0m"],
    ["a true resets clearing", "fffffft", "firing 0m 0m"],
    ["clearing then starts with the next false", "fffffftfff", "firing 0m 2m"],
    ["an unknown between two falses counts for clearing", "fffuff", "firing 0m 5m"],
    ["a gap between them counts for clearing, even if longer than max_age", "fff.....ff", "firing 0m 9m"],
    ["an unknown between a true and a false does not", "fffftuuuf", "firing 0m 0m"],
    ["a true after a gap in which it has cleared makes it pending", "f..........ft", "pending 0m 0m"],
    ["time with true continues to count", "tttt", "firing 19m 0m"],
  ])("that fires: %s", (_, verdicts, expected) => {
    expect(timerText(observeAll(verdicts, firingTimer, durations, 16))).toBe(expected);
  });

  test("with `for: 0` fires at the first true, and with `clear_for: 0` ends at the first false", () => {
    const atOnce = { ...durations, forMs: 0, clearForMs: 0 };
    expect(timerText(observeAll("t", INACTIVE, atOnce))).toBe("firing 0m 0m");
    expect(observeAll("tf", INACTIVE, atOnce)).toBe(INACTIVE);
  });

  test("records when it left the inactive state, on the journal's clock, even while flapping", () => {
    expect(observeAll("fft").since).toBe(EPOCH + 2 * MINUTE_MS);
    expect(observeAll("ffttfut", firingTimer, durations, 16).since).toBe(EPOCH);
    expect(observeAll("tft").since).toBe(EPOCH + 2 * MINUTE_MS);
  });
});

test("intermittent data does not reset a timer (prometheus#14085)", () => {
  expect(timerText(observeAll("ttu".repeat(14)))).toBe("pending 14m 0m");
  expect(timerText(observeAll("ttu".repeat(15)))).toBe("firing 15m 0m");
});

describe("the same data", () => {
  test("observed again returns the same timer", () => {
    const timer = observeAll("ttt");
    expect(observeCondition(timer, observation(2, "true"), durations)).toBe(timer);
    expect(observeCondition(timer, observation(1, "false"), durations)).toBe(timer);
  });

  test("observed again after an unknown does not bridge the gap", () => {
    const frozen = observeAll("tttu");
    const again = observeCondition(frozen, observation(2, "true"), durations);
    expect(timerText(observeAll("t", again, durations, 4))).toBe("pending 2m 0m");
  });

  test("known again after an unknown ends the time for which `when` was unknown", () => {
    const unknown = observeAll("fuu", firingTimer, durations, 16);
    const knownAgain = observeCondition(
      unknown,
      { ...observation(16, "false"), now: EPOCH + 19 * MINUTE_MS },
      durations,
    );
    expect(knownAgain.unknownSince).toBeNull();
    expect(timerText(observeAll("uf", knownAgain, durations, 40))).toBe("inactive 0m 0m");
  });

  test("with another verdict resets a pending timer, but clears nothing and adds no time", () => {
    expect(observeCondition(observeAll("ttt"), observation(2, "false"), durations)).toBe(INACTIVE);
    const doubtful = observeCondition(firingTimer, observation(15, "false"), { ...durations, clearForMs: 0 });
    expect(timerText(doubtful)).toBe("firing 0m 0m");
    expect(timerText(observeAll("f", doubtful, durations, 16))).toBe("firing 0m 0m");
    const clearing = observeAll("fff", firingTimer, durations, 16);
    expect(timerText(observeCondition(clearing, observation(18, "true"), durations))).toBe("firing 0m 0m");
  });
});

describe("a policy that reads data of several ages", () => {
  const mixed = (oldest: number, newest: number, verdict: Observation["verdict"]): Observation => ({
    ...observation(oldest, verdict),
    newest: newest * MINUTE_MS,
  });
  const watchMixed = (...observations: Observation[]) =>
    observations.reduce((timer, one) => observeCondition(timer, one, durations), INACTIVE);

  test("counts from its newest data, which made the condition true", () => {
    expect(timerText(watchMixed(mixed(0, 4, "true"), mixed(5, 6, "true")))).toBe("pending 1m 0m");
  });

  test("counts up to its oldest data", () => {
    const observations = [mixed(1, 1, "true"), mixed(1, 2, "true"), mixed(1, 3, "true"), mixed(1, 4, "true")];
    expect(timerText(watchMixed(...observations))).toBe("pending 0m 0m");
    expect(timerText(watchMixed(...observations, mixed(4, 5, "true")))).toBe("pending 3m 0m");
  });

  test("is reset by a false from its newest data", () => {
    expect(watchMixed(mixed(1, 2, "true"), mixed(1, 3, "true"), mixed(1, 4, "false"))).toBe(INACTIVE);
  });
});

describe("while an action of ours is in progress", () => {
  const frozen = (timer: Timer, minute: number, verdict: Observation["verdict"]) =>
    observeCondition(timer, observation(minute, verdict), durations, { clearFrozen: true });

  test("falses clear nothing, and their time never counts", () => {
    const after = frozen(frozen(observeAll("fff", firingTimer, durations, 16), 19, "false"), 20, "false");
    expect(timerText(after)).toBe("firing 0m 2m");
    expect(timerText(observeAll("f", after, durations, 21))).toBe("firing 0m 2m");
    expect(timerText(observeAll("ff", after, durations, 21))).toBe("firing 0m 3m");
  });

  test("an observation of known data interrupts the count", () => {
    const after = frozen(observeAll("fff", firingTimer, durations, 16), 18, "false");
    expect(timerText(observeAll("f", after, durations, 19))).toBe("firing 0m 2m");
  });

  test("even `clear_for: 0` waits for the end of the action and newer data", () => {
    const atOnce = { ...durations, clearForMs: 0 };
    const under = observeCondition(firingTimer, observation(16, "false"), atOnce, { clearFrozen: true });
    expect(observeCondition(under, observation(16, "false"), atOnce).state).toBe("firing");
    expect(observeCondition(under, observation(17, "false"), atOnce)).toBe(INACTIVE);
  });

  test("a true still resets clearing, and a false still resets a pending timer", () => {
    expect(timerText(frozen(observeAll("fff", firingTimer, durations, 16), 19, "true"))).toBe("firing 0m 0m");
    expect(frozen(observeAll("tt"), 2, "false")).toBe(INACTIVE);
  });
});

test("untrusted data resets pending timers, and counts for the clearing of firing ones between two falses", () => {
  expect(markUntrusted(INACTIVE, EPOCH)).toBe(INACTIVE);
  expect(markUntrusted(observeAll("ttt"), EPOCH)).toBe(INACTIVE);
  expect(timerText(markUntrusted(observeAll("ttt", markUnseen(firingTimer), durations, 40), EPOCH))).toBe(
    "lapsed 0m 0m",
  );
  const clearing = markUntrusted(observeAll("fff", firingTimer, durations, 16), EPOCH + 18 * MINUTE_MS);
  expect(timerText(clearing)).toBe("firing 0m 2m");
  expect(timerText(observeAll("f", clearing, durations, 19))).toBe("firing 0m 3m");
});

test("a timer is restored from its row without counting the time in between", () => {
  const row = toTimerRow("reboot-offline", "n-1", observeAll("tttt"))!;
  expect(row).toEqual({
    policy: "reboot-offline",
    node: "n-1",
    state: "pending",
    trueMs: 3 * MINUTE_MS,
    clearMs: 0,
    since: EPOCH,
  });
  expect(timerText(observeAll("t", restoreTimer(row), durations, 4))).toBe("pending 3m 0m");
  expect(timerText(observeAll("tt", restoreTimer(row), durations, 4))).toBe("pending 4m 0m");
  // The new process counts its monotonic clock from anywhere.
  expect(timerText(observeAll("tt", restoreTimer(row), durations, -900))).toBe("pending 4m 0m");
});

describe("a timer with an unknown verdict", () => {
  /** Numbers of unknowns that last for longer than `max_age + for`, and for one minute less. */
  const [tooLong, justNot] = ["u".repeat(22), "u".repeat(21)];

  test("stops for max_age + for; after that a pending timer ends", () => {
    expect(timerText(observeAll(`ttt${justNot}`))).toBe("pending 2m 0m");
    expect(observeAll(`ttt${tooLong}`)).toBe(INACTIVE);
  });

  test("for longer than that lapses if it is firing, and has to prove `for` from zero", () => {
    expect(timerText(observeAll(justNot, firingTimer, durations, 16))).toBe("firing 15m 0m");
    const lapsed = observeAll(tooLong, firingTimer, durations, 16);
    expect(timerText(lapsed)).toBe("lapsed 0m 0m");
    expect(timerText(observeAll("t".repeat(15), lapsed, durations, 40))).toBe("lapsed 14m 0m");
    expect(timerText(observeAll("t".repeat(16), lapsed, durations, 40))).toBe("firing 15m 0m");
    expect(timerText(observeAll("ttttf", lapsed, durations, 40))).toBe("lapsed 0m 0m");
  });

  test("can be cleared by `clear_for` after it lapsed", () => {
    const lapsed = observeAll(tooLong, firingTimer, durations, 16);
    expect(timerText(observeAll("f".repeat(10), lapsed, durations, 40))).toBe("lapsed 0m 9m");
    expect(observeAll("f".repeat(11), lapsed, durations, 40)).toBe(INACTIVE);
  });

  test("does not lapse while an action of ours is in progress", () => {
    const minutes = Array.from({ length: 60 }, (_, minute) => 16 + minute);
    const after = minutes.reduce(
      (timer, minute) => observeCondition(timer, observation(minute, "unknown"), durations, { clearFrozen: true }),
      firingTimer,
    );
    expect(timerText(observeAll("u", after, durations, 76))).toBe("firing 15m 0m");
  });

  test("lapses after long untrusted data, but not because of downtime", () => {
    expect(timerText(observeAll("t", markUntrusted(firingTimer, EPOCH + 15 * MINUTE_MS), durations, 36))).toBe(
      "lapsed 0m 0m",
    );
    expect(timerText(observeAll("t", markUntrusted(firingTimer, EPOCH + 15 * MINUTE_MS), durations, 35))).toBe(
      "firing 15m 0m",
    );
    const row = toTimerRow("reboot-offline", "n-1", firingTimer)!;
    expect(timerText(observeAll("t", restoreTimer(row), durations, 5_000))).toBe("firing 15m 0m");
  });

  test("lapses immediately if its node left the fleet", () => {
    expect(timerText(markUnseen(firingTimer))).toBe("lapsed 0m 0m");
    expect(markUnseen(observeAll("ttt"))).toBe(INACTIVE);
    const lapsed = markUnseen(firingTimer);
    expect(markUnseen(lapsed)).toBe(lapsed);
  });

  test("with `for: 0` fires at the first true after it lapsed", () => {
    expect(timerText(observeAll("t", markUnseen(firingTimer), { ...durations, forMs: 0 }, 40))).toBe("firing 0m 0m");
  });
});

test("an inactive timer has no row in the journal", () => {
  expect(toTimerRow("reboot-offline", "n-1", INACTIVE)).toBeNull();
});

describe("a reload", () => {
  const longer = { ...durations, forMs: 30 * MINUTE_MS };

  test("that raises `for` makes a firing timer pending with its counted time", () => {
    const demoted = applyLongerFor(firingTimer, longer.forMs);
    expect(timerText(demoted)).toBe("pending 15m 0m");
    expect(timerText(observeAll("t".repeat(15), demoted, longer, 16))).toBe("firing 30m 0m");
  });

  test.each(["f", "fff", "fffu"])("that raises `for` ends a firing timer last observed as false (%s)", (verdicts) => {
    expect(applyLongerFor(observeAll(verdicts, firingTimer, durations, 16), longer.forMs)).toBe(INACTIVE);
  });

  test("that raises `for` counts the time since the last false only, not that of earlier failures", () => {
    const flapping = observeAll("t".repeat(15) + "ft".repeat(4), firingTimer, durations, 16);
    expect(timerText(flapping)).toBe("firing 0m 0m");
    expect(timerText(applyLongerFor(flapping, 20 * MINUTE_MS))).toBe("pending 0m 0m");
  });

  test("that lowers `for` fires only with the next true", () => {
    const pending = observeAll("t".repeat(10));
    const shorter = { ...durations, forMs: 5 * MINUTE_MS };
    expect(applyLongerFor(pending, shorter.forMs)).toBe(pending);
    expect(observeCondition(pending, observation(9, "true"), shorter).state).toBe("pending");
    expect(timerText(observeAll("t", pending, shorter, 10))).toBe("firing 10m 0m");
  });

  test("that changes nothing returns the same timer", () => {
    expect(applyLongerFor(firingTimer, durations.forMs)).toBe(firingTimer);
    expect(applyLongerFor(INACTIVE, longer.forMs)).toBe(INACTIVE);
  });
});

test("a hundred thousand healthy nodes share one timer", () => {
  expect(observeCondition(INACTIVE, observation(1, "false"), durations)).toBe(INACTIVE);
  expect(observeCondition(INACTIVE, observation(1, "unknown"), durations)).toBe(INACTIVE);
  expect(Object.isFrozen(INACTIVE)).toBe(true);
});

describe("the same data with another verdict because time has passed", () => {
  const lapsed = observeAll("t".repeat(5), markUnseen(firingTimer), durations, 16);

  test("resets the counted time if it is false", () => {
    expect(timerText(lapsed)).toBe("lapsed 4m 0m");
    expect(timerText(observeCondition(lapsed, observation(20, "false"), durations))).toBe("lapsed 0m 0m");
    expect(timerText(observeCondition(firingTimer, observation(15, "false"), durations))).toBe("firing 0m 0m");
  });

  test("resets clearing if it is true, and keeps it if it is false", () => {
    const clearing = observeAll("ttfff", firingTimer, durations, 16);
    expect(timerText(clearing)).toBe("firing 0m 2m");
    const unclear = observeCondition(clearing, observation(20, "unknown"), durations);
    expect(timerText(observeCondition(unclear, observation(20, "true"), durations))).toBe("firing 0m 0m");
    expect(timerText(observeCondition(unclear, observation(20, "false"), durations))).toBe("firing 0m 2m");
  });
});

test("a restarted timer that fired before `for` was raised is pending again", () => {
  const row = toTimerRow("p", "n", firingTimer)!;
  expect(applyLongerFor(restoreTimer(row), 20 * MINUTE_MS).state).toBe("pending");
});
