import { expect, test } from "vitest";
import { runTask } from "./seed-task.ts";
import { causesOf, keptInput, worldInput } from "./world-input.ts";

const size = { nodes: 60, days: 2 };

test("a seed makes the same input each time, and another seed another one", () => {
  expect(worldInput(7, size)).toEqual(worldInput(7, size));
  expect(worldInput(8, size)).not.toEqual(worldInput(7, size));
});

test("of an input the causes stay that are named, in their order", () => {
  const input = worldInput(7, size);
  const names = causesOf(input).map(({ name }) => name);
  expect(keptInput(input, new Set(names))).toEqual(input);
  const kept = keptInput(input, new Set(["f1", "e2"]));
  expect(kept.scenario.faults).toEqual([input.scenario.faults[1]]);
  expect(kept.events).toEqual([input.events[2]]);
});

test("a run of an input repeats to the last call", async () => {
  const task = { ...size, seed: 7, keep: null, until: { ms: 2 * 3_600_000 } };
  const [one, other] = [await runTask(task), await runTask(task)];
  expect(one.calls).toBeGreaterThan(50);
  expect({ ...other, cpuSeconds: 0 }).toEqual({ ...one, cpuSeconds: 0 });
});
