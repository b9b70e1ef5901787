import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { NodeRecord } from "../../src/model/node.ts";
import { ListChangeDetector } from "../../src/scheduling/list-change-detector.ts";
import { listRecord, range } from "./node-fixtures.ts";

/** Lists of a node, a minute apart, each as it usually is but for what is said: which of them are abrupt. */
function abrupt(overrides: readonly Partial<NodeRecord>[]): readonly number[] {
  const changes = new ListChangeDetector();
  const random = seededRandom(3);
  return overrides.flatMap((each, minute) => {
    const usual = { activeSessions: 40 + Math.floor(6 * random()), bandwidthGb: 500 + minute * (0.9 + 0.2 * random()) };
    return changes.recordAndCheck(0, listRecord({ ...usual, ...each }), minute * MINUTE_MS) ? [minute] : [];
  });
}

test("abrupt changes of every node of a fleet are found", () => {
  const nodes = 100;
  const changes = new ListChangeDetector();
  const abruptSlots = (minute: number, overrides: Partial<NodeRecord>) =>
    range(0, nodes).filter((slot) => changes.recordAndCheck(slot, listRecord(overrides), minute * MINUTE_MS));
  for (let minute = 0; minute < 10; minute++) expect(abruptSlots(minute, {})).toEqual([]);
  expect(abruptSlots(10, { activeSessions: 400 })).toEqual(range(0, nodes));
  expect(abruptSlots(11, { activeSessions: 400, uptimeHours: 0 })).toEqual(range(0, nodes));
});

const usualRecord = (records: number): Partial<NodeRecord>[] => Array.from({ length: records }, () => ({}));

describe("a list record", () => {
  test("without a change is never abrupt", () => {
    expect(abrupt(usualRecord(1_000))).toEqual([]);
  });

  test.each([0.1, 12.3, 100_000.7])("with a constant uptime of %d hours is not abrupt", (uptimeHours) => {
    expect(abrupt(usualRecord(20).map(() => ({ uptimeHours })))).toEqual([]);
  });

  test.each<Partial<NodeRecord>>([{ status: "offline" }, { version: "1.1" }, { version: null }, { uptimeHours: 0 }])(
    "with %j stands out, from the second record on",
    (overrides) => {
      expect(abrupt([{}, overrides])).toEqual([1]);
      expect(abrupt([overrides])).toEqual([]);
    },
  );

  test("is abrupt once when the status changes, and once when it changes back", () => {
    const gone = Array.from({ length: 5 }, (): Partial<NodeRecord> => ({ status: "offline" }));
    expect(abrupt([{}, ...gone, ...usualRecord(5)])).toEqual([1, 6]);
  });

  test("is abrupt with half or twice the sessions, which become the new baseline", () => {
    for (const activeSessions of [15, 90]) {
      expect(abrupt([...usualRecord(10), ...Array.from({ length: 20 }, () => ({ activeSessions }))])).toEqual([10]);
    }
  });

  test("is abrupt again when the sessions return to the old baseline", () => {
    expect(
      abrupt([...usualRecord(10), ...Array.from({ length: 6 }, () => ({ activeSessions: 90 })), ...usualRecord(5)]),
    ).toEqual([10, 16]);
  });

  test("is not abrupt with slightly more or fewer sessions", () => {
    expect(abrupt([...usualRecord(10), { activeSessions: 48 }, { activeSessions: 33 }])).toEqual([]);
  });

  test("is not abrupt with two more or fewer of a handful of sessions", () => {
    const few = [2, 3, 2, 4, 3, 2, 2, 3, 5, 1, 0, 2].map((activeSessions) => ({ activeSessions }));
    expect(abrupt(few)).toEqual([]);
  });

  test("is abrupt if the bandwidth jumps, but not if it is reset or missing", () => {
    const steady = (minutes: number, perMinute: number, from = 500) =>
      Array.from({ length: minutes }, (_, minute) => ({ activeSessions: 40, bandwidthGb: from + perMinute * minute }));
    const before = steady(10, 1);
    expect(abrupt([...before, { activeSessions: 40, bandwidthGb: 530 }])).toEqual([10]);
    expect(abrupt([...before, ...steady(10, 1, 0)])).toEqual([]);
    expect(abrupt([...before, { activeSessions: null, bandwidthGb: null }, ...steady(5, 1, 511)])).toEqual([]);
  });

  test("is not compared with the previous node in the slot", () => {
    const changes = new ListChangeDetector();
    for (let minute = 0; minute < 20; minute++) changes.recordAndCheck(3, listRecord({}), minute * MINUTE_MS);
    changes.forgetNode(3);
    const other = listRecord({
      id: "node_1",
      status: "offline",
      version: "9",
      uptimeHours: 0,
      activeSessions: 0,
      bandwidthGb: 0,
    });
    expect(changes.recordAndCheck(3, other, 20 * MINUTE_MS)).toBe(false);
  });
});
