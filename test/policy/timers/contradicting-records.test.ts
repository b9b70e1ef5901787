import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { type Observation, observeCondition, restoreTimer, type Timer, toTimerRow } from "../../../src/policy/timer.ts";
import { durations, EPOCH, firingTimer, observation, observeAll, timerText } from "./minute-observations.ts";

describe("a record that contradicts the last observation", () => {
  const contradicted = (timer: Timer, minute: number, verdict: Observation["verdict"], contradictedAt: number) =>
    observeCondition(timer, { ...observation(minute, verdict), contradictedAt: contradictedAt * MINUTE_MS }, durations);

  test("lets a pending timer start again from zero", () => {
    const restarted = contradicted(observeAll("ttt"), 3, "true", 2.5);
    expect(timerText(restarted)).toBe("pending 0m 0m");
    expect(restarted.since).toBe(EPOCH + 3 * MINUTE_MS);
    expect(timerText(observeAll("tt", restarted, durations, 4))).toBe("pending 2m 0m");
  });

  test("that was evaluated itself, or came before, changes nothing", () => {
    expect(timerText(contradicted(observeAll("ttt"), 3, "true", 2))).toBe("pending 3m 0m");
    expect(timerText(contradicted(observeAll("fttt"), 4, "true", 0))).toBe("pending 3m 0m");
  });

  test("lets a firing timer fire, and restarts its clearing", () => {
    const clearing = observeAll("ffff", firingTimer, durations, 16);
    expect(timerText(contradicted(clearing, 20, "false", 19.5))).toBe("firing 0m 0m");
    expect(timerText(contradicted(firingTimer, 16, "true", 15.5))).toBe("firing 0m 0m");
  });

  test("lets a restored timer start again, since what came before is not known", () => {
    const restored = restoreTimer(toTimerRow("reboot-offline", "n-1", observeAll("tttt"))!);
    expect(timerText(contradicted(restored, 9, "true", 8))).toBe("pending 0m 0m");
    expect(timerText(observeCondition(restored, observation(9, "true"), durations))).toBe("pending 3m 0m");
  });

  test("lets a firing timer lapse if the condition stays unknown for too long, however often records contradict", () => {
    const minutes = Array.from({ length: 22 }, (_, index) => 16 + index);
    const timers = (last: number) =>
      minutes
        .filter((minute) => minute <= last)
        .reduce((timer, minute) => contradicted(timer, minute, "unknown", minute - 0.5), firingTimer);
    expect(timerText(timers(36))).toBe("firing 0m 0m");
    expect(timerText(timers(37))).toBe("lapsed 0m 0m");
  });
});
