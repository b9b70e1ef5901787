import { describe, expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { IntervalSpec } from "../../../src/model/policy/time-interval.ts";
import { nextOpening, windowBlockers } from "../../../src/policy/guards/time-window.ts";
import { FRIDAY, namedInterval, newYork, nights, paris, range, SATURDAY, times } from "./time-interval-fixtures.ts";

describe("the next opening", () => {
  const opens = (spec: IntervalSpec, from: string) => {
    const opening = nextOpening([namedInterval("window", spec)], Date.parse(from));
    return opening === null ? null : new Date(opening.at).toISOString();
  };

  test.each<[what: string, spec: IntervalSpec, from: string, opening: string | null]>([
    ["is now where it is open", { times: nights }, "2026-03-01T23:30:30.500Z", "2026-03-01T23:30:30.500Z"],
    ["is this evening", { ...paris, times: nights }, "2026-03-01T12:00:30.5Z", "2026-03-01T22:00:00.000Z"],
    ["is on its weekday", { weekdays: range(SATURDAY) }, "2026-03-01T00:00Z", "2026-03-07T00:00:00.000Z"],
    [
      "is after the skipped hour",
      { ...paris, times: times("02:15-04:00") },
      "2026-03-28T12:00Z",
      "2026-03-29T01:00:00.000Z",
    ],
    [
      "is on the next day if the clocks skip it",
      { ...paris, times: times("02:15-02:45") },
      "2026-03-28T12:00Z",
      "2026-03-30T00:15:00.000Z",
    ],
    [
      "is in the second of the two hours if the clocks repeat one and the first has passed",
      { ...paris, times: times("02:15-02:45") },
      "2026-10-25T00:50Z",
      "2026-10-25T01:15:00.000Z",
    ],
    [
      "comes as the clocks go back",
      { ...paris, times: times("01:00-02:30") },
      "2026-10-25T00:40Z",
      "2026-10-25T01:00:00.000Z",
    ],
    ["is none within eight days", { months: range(12) }, "2026-03-01T00:00Z", null],
  ])("%s", (_, spec, from, opening) => {
    expect(opens(spec, from)).toBe(opening);
  });

  test("is the earliest of all intervals, with its zone", () => {
    const evening = namedInterval("evening", { ...paris, times: times("20:00-21:00") });
    const later = namedInterval("later", { ...newYork, times: times("16:00-17:00") }, { times: times("20:00-21:00") });
    const from = Date.parse("2026-03-02T12:00Z");
    expect(nextOpening([later, evening], from)).toEqual({ at: from + 420 * MINUTE_MS, zone: "Europe/Paris" });
    expect(nextOpening([evening, later], from)).toEqual({ at: from + 420 * MINUTE_MS, zone: "Europe/Paris" });
    expect(nextOpening([], from)).toBeNull();
    const same = namedInterval("same", { ...newYork, times: times("14:00-15:00") });
    expect(nextOpening([evening, same], from)?.zone).toBe("Europe/Paris");
    expect(nextOpening([same, evening], from)?.zone).toBe("America/New_York");
  });

  test("is a whole millisecond, also when the clocks change", () => {
    const dawn = namedInterval("dawn", { ...paris, times: times("02:15-04:00") });
    const opening = { at: Date.parse("2026-03-29T01:00Z"), zone: "Europe/Paris" };
    for (const part of [0.1, 0.2, 0.5, 0.9]) expect(nextOpening([dawn], opening.at - 1_000 + part)).toEqual(opening);
  });

  test("is not searched beyond eight days", () => {
    const twentieth = namedInterval("window", { daysOfMonth: range(20) });
    expect(nextOpening([twentieth], Date.parse("2026-03-01T00:00Z"))).toBeNull();
  });
});

describe("a policy's windows", () => {
  const intervals = new Map(
    [namedInterval("nights", { ...paris, times: nights }), namedInterval("fridays", { weekdays: range(FRIDAY) })].map(
      (interval) => [interval.name, interval],
    ),
  );
  const noon = Date.parse("2026-03-02T12:00Z");
  const night = Date.parse("2026-03-02T23:00Z");
  const details = (names: readonly string[], ...at: number[]) =>
    windowBlockers(names, intervals, at).map(({ reason, detail }) => `${reason}: ${detail}`);

  test("don't hold if there are none, or if one of them is open", () => {
    expect(details([], noon)).toEqual([]);
    expect(details([])).toEqual([]);
    expect(details(["fridays", "nights"], night)).toEqual([]);
  });

  test("hold outside all of them and report the next opening", () => {
    expect(details(["nights"], noon, noon)).toEqual(["window: outside nights; opens at 2026-03-02 23:00 Europe/Paris"]);
    expect(details(["fridays", "nights"], noon)).toEqual([
      "window: outside fridays, nights; opens at 2026-03-02 23:00 Europe/Paris",
    ]);
    expect(details(["fridays"], noon)).toEqual(["window: outside fridays; opens at 2026-03-06 00:00 UTC"]);
  });

  test("report the next opening by the slower of two clocks", () => {
    expect(details(["nights"], noon + DAY_MS, noon)).toEqual([
      "window: outside nights; opens at 2026-03-02 23:00 Europe/Paris",
    ]);
  });

  test("hold if only one clock is within, at either end", () => {
    const [opening, closing] = [Date.parse("2026-03-02T22:00Z"), Date.parse("2026-03-03T04:00Z")];
    expect(details(["nights"], opening, opening - 1)).toEqual([
      "window: outside nights by one of the two clocks; opens at 2026-03-02 23:00 Europe/Paris",
    ]);
    expect(details(["nights"], closing, closing - 1)).toEqual([
      "window: outside nights by one of the two clocks; opens at 2026-03-03 23:00 Europe/Paris",
    ]);
  });

  test("hold for an unknown name, even if another window is open", () => {
    expect(details(["nihgts", "nights"], night)).toEqual(["window: unknown time interval nihgts"]);
    expect(details(["nihgts", "fridasy"], night)).toEqual([
      "window: unknown time interval nihgts",
      "window: unknown time interval fridasy",
    ]);
    expect(details(["nihgts", "nights"], noon)).toEqual([
      "window: unknown time interval nihgts",
      "window: outside nights; opens at 2026-03-02 23:00 Europe/Paris",
    ]);
  });

  test("hold if the time is unknown", () => {
    expect(details(["nights"])).toEqual(["window: the current time is unknown"]);
    expect(details(["nights"], night, Number.NaN)).toEqual(["window: the current time is unknown"]);
  });

  test("report if they don't open within eight days", () => {
    const rare = new Map([["rare", namedInterval("rare", { months: range(12) })]]);
    expect(windowBlockers(["rare"], rare, [noon])[0]!.detail).toBe("outside rare; does not open within 8d");
  });
});
