import { expect, test } from "vitest";
import { createSequence } from "../../src/platform/sequence.ts";

test("a sequence begins each work when the one before has ended or failed, and returns its result", async () => {
  const inSequence = createSequence();
  const events: string[] = [];
  const first = Promise.withResolvers<void>();
  const failing = inSequence(async () => {
    events.push("first begins");
    await first.promise;
    events.push("first fails");
    throw new Error("it failed");
  });
  const second = inSequence(async () => {
    events.push("second begins");
    return "done";
  });
  first.resolve();
  await expect(failing).rejects.toThrow("it failed");
  expect(await second).toBe("done");
  expect(events).toEqual(["first begins", "first fails", "second begins"]);
});
