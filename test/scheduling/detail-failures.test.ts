import { expect, test } from "vitest";
import { createDetailFailures } from "../../src/scheduling/detail-failures.ts";

test("failures are the nodes' own once another read succeeds", () => {
  const failures = createDetailFailures();
  failures.failed("a", true);
  failures.failed("b", true);
  expect(failures.succeeded("c")).toEqual(["a", "b"]);
  expect(failures.succeeded("c")).toEqual([]);
});

test("a failure that says nothing about a node, and one of a node that could be read since, are not the node's own", () => {
  const failures = createDetailFailures();
  failures.failed("a", false);
  failures.failed("b", true);
  expect(failures.succeeded("b")).toEqual([]);
});

test("four failures in a row lead to a probe, and failed probes to longer waits, up to five minutes", () => {
  const failures = createDetailFailures();
  for (const id of ["a", "b", "c"]) failures.failed(id, true);
  expect(failures.isServiceSuspected()).toBe(false);
  failures.failed("d", true);
  expect(failures.isServiceSuspected()).toBe(true);
  expect(failures.spacing(1_000)).toBe(1_000);
  const waits = Array.from({ length: 12 }, () => {
    failures.probeFailed();
    return failures.spacing(1_000);
  });
  expect(waits.slice(0, 3)).toEqual([2_000, 4_000, 8_000]);
  expect(waits.at(-1)).toBe(300_000);
  expect(failures.spacing(600_000)).toBe(600_000);
});

test("one success ends the suspicion", () => {
  const failures = createDetailFailures();
  for (const id of ["a", "b", "c", "d", "e"]) failures.failed(id, true);
  failures.probeFailed();
  expect(failures.succeeded("f")).toEqual(["a", "b", "c", "d", "e"]);
  expect(failures.isServiceSuspected()).toBe(false);
  expect(failures.spacing(1_000)).toBe(1_000);
});

test("after a probe that succeeded, the next sixty reads bring no suspicion", () => {
  const failures = createDetailFailures();
  const fail = (count: number) => {
    for (let read = 0; read < count; read++) failures.failed(`node_${read}`, true);
  };
  fail(4);
  failures.succeeded("good");
  fail(60);
  expect(failures.isServiceSuspected()).toBe(false);
  fail(4);
  expect(failures.isServiceSuspected()).toBe(true);
});

test("reads that succeed are among the sixty", () => {
  const failures = createDetailFailures();
  const fail = (count: number) => {
    for (let read = 0; read < count; read++) failures.failed(`node_${read}`, true);
  };
  fail(4);
  failures.succeeded("good");
  for (let read = 0; read < 20; read++) failures.succeeded("good");
  fail(43);
  expect(failures.isServiceSuspected()).toBe(false);
  fail(1);
  expect(failures.isServiceSuspected()).toBe(true);
});
