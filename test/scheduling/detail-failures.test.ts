import { expect, test } from "vitest";
import { createDetailFailures } from "../../src/scheduling/detail-failures.ts";

test("attributes failures to the nodes once another read succeeds", () => {
  const failures = createDetailFailures();
  failures.recordFailure("a", true);
  failures.recordFailure("b", true);
  expect(failures.recordSuccess("c")).toEqual(["a", "b"]);
  expect(failures.recordSuccess("c")).toEqual([]);
});

test("does not attribute failures that may not be the node's, or of a node that was read since", () => {
  const failures = createDetailFailures();
  failures.recordFailure("a", false);
  failures.recordFailure("b", true);
  expect(failures.recordSuccess("b")).toEqual([]);
});

test("suspects the service after four failures in a row, and doubles the wait after each failed probe, up to five minutes", () => {
  const failures = createDetailFailures();
  for (const id of ["a", "b", "c"]) failures.recordFailure(id, true);
  expect(failures.isServiceSuspected()).toBe(false);
  failures.recordFailure("d", true);
  expect(failures.isServiceSuspected()).toBe(true);
  expect(failures.probeSpacingMs(1_000)).toBe(1_000);
  const waits = Array.from({ length: 12 }, () => {
    failures.recordProbeFailure();
    return failures.probeSpacingMs(1_000);
  });
  expect(waits.slice(0, 3)).toEqual([2_000, 4_000, 8_000]);
  expect(waits.at(-1)).toBe(300_000);
  expect(failures.probeSpacingMs(600_000)).toBe(600_000);
});

test("trusts the service after one success", () => {
  const failures = createDetailFailures();
  for (const id of ["a", "b", "c", "d", "e"]) failures.recordFailure(id, true);
  failures.recordProbeFailure();
  expect(failures.recordSuccess("f")).toEqual(["a", "b", "c", "d", "e"]);
  expect(failures.isServiceSuspected()).toBe(false);
  expect(failures.probeSpacingMs(1_000)).toBe(1_000);
});

test("does not suspect the service in the sixty reads after a successful probe", () => {
  const failures = createDetailFailures();
  const fail = (count: number) => {
    for (let read = 0; read < count; read++) failures.recordFailure(`node_${read}`, true);
  };
  fail(4);
  failures.recordSuccess("good");
  fail(60);
  expect(failures.isServiceSuspected()).toBe(false);
  fail(4);
  expect(failures.isServiceSuspected()).toBe(true);
});

test("counts successful reads among the sixty", () => {
  const failures = createDetailFailures();
  const fail = (count: number) => {
    for (let read = 0; read < count; read++) failures.recordFailure(`node_${read}`, true);
  };
  fail(4);
  failures.recordSuccess("good");
  for (let read = 0; read < 20; read++) failures.recordSuccess("good");
  fail(43);
  expect(failures.isServiceSuspected()).toBe(false);
  fail(1);
  expect(failures.isServiceSuspected()).toBe(true);
});
