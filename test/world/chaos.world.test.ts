import { expect, test } from "vitest";
import { liveThrough } from "./chaos.ts";

// WORLD_SEED=17 replays one; WORLD_SEED=100-160 lives through others.
const [first = "1", last = process.env.WORLD_SEED === undefined ? "24" : first] = (process.env.WORLD_SEED ?? "1").split(
  "-",
);
const seeds = Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => Number(first) + index);

const size = { hours: Number(process.env.WORLD_HOURS ?? 12), nodes: Number(process.env.WORLD_NODES ?? 300) };

test.each(seeds)("no law is broken in the turmoil of seed %i", async (seed) => {
  const { breaches, posts, episodes, lives } = await liveThrough(seed, size);
  console.log(
    `seed ${seed}: ${lives} lives, ${episodes} episodes, ${posts.length} actions, ${breaches.length} laws broken`,
  );
  expect(
    breaches,
    `WORLD_SEED=${seed} WORLD_HOURS=${size.hours} WORLD_NODES=${size.nodes} npm run world -- chaos`,
  ).toEqual([]);
});
