import { expect, test } from "vitest";
import { worldInput } from "./runs/world-input.ts";
import { runWorld } from "./runs/world-run.ts";
import { runMutations } from "./seeds/mutation-run.ts";

const SEED = 106;
const NODES = 20;
/** Four hours with faults, and the quiet period. */
const DAYS = 16 / 24;

test("no invariant is violated in a world of 16 hours with a small fleet", async () => {
  const { violations } = await runWorld(worldInput(SEED, { nodes: NODES, days: DAYS }));
  expect(violations, `npm run world -- --seed ${SEED} --nodes ${NODES} --days ${DAYS} replays it`).toEqual([]);
});

test("catches a deliberate fault in an edited copy of the project", async () => {
  expect(await runMutations(1, "month not counted before the call")).toBe(true);
}, 60_000);
