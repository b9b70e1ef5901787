import { expect, test } from "vitest";
import { runTask } from "../seeds/seed-task.ts";
import { causesOf, inputWithCauses, worldInput } from "./world-input.ts";

const size = { nodes: 60, days: 2 };

test("derives the same input from the same seed and a different one from another seed", () => {
  expect(worldInput(7, size)).toEqual(worldInput(7, size));
  expect(worldInput(8, size)).not.toEqual(worldInput(7, size));
});

test("varies what the service states as created_at by the number of the seed alone", () => {
  const createdAt = (seed: number) => worldInput(seed, size).scenario.service.createdAt;
  expect([7, 8, 16].map(createdAt)).toEqual(["creation", "boot", "request"]);
});

test("keeps only the named faults and events, in order", () => {
  const input = worldInput(7, size);
  const names = causesOf(input).map(({ name }) => name);
  expect(inputWithCauses(input, new Set(names))).toEqual(input);
  const reduced = inputWithCauses(input, new Set(["f1", "e2"]));
  expect(reduced.scenario.faults).toEqual([input.scenario.faults[1]]);
  expect(reduced.events).toEqual([input.events[2]]);
});

test("repeats a run of the same input exactly", async () => {
  const task = { ...size, seed: 7, keep: null, until: { ms: 3_600_000 } };
  const [one, other] = [await runTask(task), await runTask(task)];
  expect(one.calls).toBeGreaterThan(50);
  expect({ ...other, cpuSeconds: 0 }).toEqual({ ...one, cpuSeconds: 0 });
});
