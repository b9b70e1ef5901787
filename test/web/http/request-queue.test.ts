import { expect, test } from "vitest";
import { runInSlices } from "../../../src/platform/event-loop.ts";
import { createRequestQueue } from "../../../src/web/http/request-queue.ts";

test("the queue leaves half of the event loop free: the pause after a request is as long as the request took", async () => {
  let nowMs = 0;
  const slept: number[] = [];
  const queue = createRequestQueue({
    monotonic: () => nowMs,
    sleep(ms) {
      slept.push(ms);
      return Promise.resolve();
    },
  });
  const work = async (ms: number) => {
    await queue.enter();
    nowMs += ms;
  };
  await Promise.all([work(30), work(0.1), work(9_000), work(5), work(0)]);
  expect(slept).toEqual([30, 250, 5]);
});

test("the queue does not wait for a database that answers late", async () => {
  const slept: number[] = [];
  const sleep = (ms: number) => Promise.resolve(void slept.push(ms));
  const queue = createRequestQueue({ monotonic: () => 0, sleep });
  await queue.enter();
  void queue.occupy(new Promise(() => {}), 250);
  await queue.enter();
  expect(slept).toEqual([250]);
});

test("the queue runs one answer at a time that is cut into slices, even if one fails", async () => {
  let nowMs = 0;
  const slept: number[] = [];
  const clock = {
    monotonic: () => nowMs,
    sleep(ms: number) {
      slept.push(ms);
      return Promise.resolve();
    },
  };
  const queue = createRequestQueue(clock);
  const turns = { count: 0, areCounted: true };
  const countTurn = () => {
    turns.count++;
    if (turns.areCounted) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const order: string[] = [];
  function* steps(name: string, count: number) {
    for (let step = 0; step < count; step++) {
      nowMs += 2;
      order.push(name);
      yield;
    }
    if (count === 1) throw new Error("a defect");
    return name;
  }
  const answer = async (name: string, count: number) => {
    await queue.enter();
    return queue.occupy(runInSlices(steps(name, count), clock));
  };
  const answers = await Promise.allSettled([answer("a", 3), answer("b", 1), answer("c", 2)]);
  turns.areCounted = false;
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(order).toEqual(["a", "a", "a", "b", "c", "c"]);
  expect(turns.count).toBeGreaterThanOrEqual(6);
  await queue.enter();
  expect(slept).toEqual([6, 2, 4]);
});
