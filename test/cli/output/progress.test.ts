import { expect, test } from "vitest";
import { CLEAR_LINE, withProgress } from "../../../src/cli/output/progress.ts";

/** A clock that the test advances. A sleep ends at its time or when it is aborted. */
function manualClock() {
  let now = 0;
  const sleepers: { at: number; wake: () => void }[] = [];
  return {
    monotonic: () => now,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((wake) => {
        signal?.addEventListener("abort", () => wake(), { once: true });
        sleepers.push({ at: now + ms, wake });
      }),
    async pass(ms: number) {
      for (const end = now + ms; now < end; ) {
        now += 1_000;
        for (const { at, wake } of sleepers) if (at <= now) wake();
        // The code that was woken continues, and may sleep again.
        for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      }
    },
  };
}

function terminal(isTTY: boolean) {
  const lines: string[] = [];
  return { lines, err: { isTTY, write: (text: string) => void lines.push(text) } };
}

test("a terminal shows a wait after two seconds; the line is cleared at the end", async () => {
  const clock = manualClock();
  const { lines, err } = terminal(true);
  const { promise, resolve } = Promise.withResolvers<string>();
  const waited = withProgress("waiting for the daemon", promise, { err }, clock);
  await clock.pass(1_000);
  expect(lines).toEqual([]);
  await clock.pass(2_000);
  const shown = [`${CLEAR_LINE}waiting for the daemon: 2 s`, `${CLEAR_LINE}waiting for the daemon: 3 s`];
  expect(lines).toEqual(shown);
  resolve("well");
  expect(await waited).toBe("well");
  expect(lines).toEqual([...shown, CLEAR_LINE]);
});

test("work of less than two seconds prints nothing, even if it fails", async () => {
  const clock = manualClock();
  const { lines, err } = terminal(true);
  expect(await withProgress("a", Promise.resolve(1), { err }, clock)).toBe(1);
  await expect(withProgress("a", Promise.reject(new Error("no")), { err }, clock)).rejects.toThrow("no");
  expect(lines).toEqual([]);
});

test("nothing is written to a file, however long the wait", async () => {
  const clock = manualClock();
  const { lines, err } = terminal(false);
  const { promise, resolve } = Promise.withResolvers<void>();
  const waited = withProgress("a", promise, { err }, clock);
  await clock.pass(10_000);
  resolve();
  await waited;
  expect(lines).toEqual([]);
});
