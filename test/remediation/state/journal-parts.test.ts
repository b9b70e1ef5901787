import { expect, test } from "vitest";
import { seededRandom } from "../../../src/base/random.ts";
import type { TimerChange } from "../../../src/policy/remediation-records.ts";
import { splitByNode } from "../../../src/remediation/state/timer-parts.ts";

const gone = (policy: string, node: string): TimerChange => ({ kind: "timer_gone", policy, node });
const nodeOf = (change: TimerChange) => (change.kind === "timer" ? change.row.node : change.node);

function partsOf(changes: readonly TimerChange[]): readonly (readonly TimerChange[])[] {
  const steps = splitByNode(changes);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

test("few changes are one part, in their order", () => {
  const changes = ["node_3", "node_1", "node_2", "node_1"].map((node) => gone("one", node));
  expect(partsOf(changes)).toEqual([changes]);
  expect(partsOf([])).toEqual([[]]);
});

test("each part of a mass event has the changes of a range of nodes, and those of a timer in their order", () => {
  const random = seededRandom(1);
  const nodes = Array.from({ length: 5_000 }, () => `node_${random()}`);
  const changes = [
    ...nodes.map((node) => gone("first", node)),
    ...["one", "two"].flatMap((policy) => nodes.map((node) => gone(policy, node))),
  ];
  const parts = partsOf(changes);
  expect(parts.length).toBeGreaterThan(10);
  expect(new Set(parts.flat()).size).toBe(changes.length);
  for (const [index, part] of parts.entries()) {
    expect(part.length).toBeLessThan(1_500);
    const last = parts[index - 1]?.map(nodeOf).reduce((one, other) => (one > other ? one : other)) ?? "";
    expect(part.every((change) => nodeOf(change) > last)).toBe(true);
    const order = part.map((change) => changes.indexOf(change));
    expect(order).toEqual(order.toSorted((one, other) => one - other));
  }
});

test("the changes of one node are in one part, however many there are", () => {
  const changes = Array.from({ length: 2_000 }, (_, index) => gone(`policy-${index}`, "node_1"));
  expect(partsOf(changes).filter(({ length }) => length > 0)).toEqual([changes]);
});
