import { expect, test } from "vitest";
import { CommandFailure } from "../../../src/cli/context.ts";
import { type DaemonViewOptions, showView } from "../../../src/cli/daemon-views/daemon-view.ts";
import type { Output } from "../../../src/cli/output/text.ts";

/**
 * Shows one value after the other until there are none left, and returns what was printed. The command is stopped
 * after the last value is printed or, if `stopsInRead`, while it is read.
 */
async function watch(
  values: readonly (string | CommandFailure | { readonly value: string; readonly notes: readonly string[] })[],
  {
    output = "text",
    isTTY = false,
    stopsInRead = false,
  }: { output?: DaemonViewOptions["output"]; isTTY?: boolean; stopsInRead?: boolean } = {},
) {
  const stop = new AbortController();
  const texts = { out: "", err: "" };
  const into = (stream: keyof typeof texts): Output => ({
    isTTY,
    write(text) {
      texts[stream] += text;
    },
  });
  const left = [...values];
  const waits: number[] = [];
  await showView(
    () => {
      const value = left.shift()!;
      if (stopsInRead && left.length === 0) stop.abort();
      if (value instanceof CommandFailure) return Promise.reject(value);
      const view = typeof value === "string" ? { value } : value;
      return Promise.resolve({ ...view, format: () => `${view.value}\n` });
    },
    { url: "http://127.0.0.1:1", output, watch: true },
    { env: {}, out: into("out"), err: into("err"), stop: stop.signal, onSighup() {}, version: "0.0.0-test" },
    {
      sleep(ms) {
        waits.push(ms);
        if (left.length === 0) stop.abort();
        return Promise.resolve();
      },
    },
  );
  return { ...texts, waits };
}

test("--watch reads every two seconds until it is stopped, and prints what has changed", async () => {
  expect(await watch(["1 offline", "1 offline", "2 offline"])).toEqual({
    out: "1 offline\n2 offline\n",
    err: "",
    waits: [2_000, 2_000, 2_000],
  });
});

test("--watch clears a terminal before each change", async () => {
  const clear = "\u{1b}[2J\u{1b}[H";
  expect((await watch(["1 offline", "2 offline"], { isTTY: true })).out).toBe(`${clear}1 offline\n${clear}2 offline\n`);
});

test("--watch with --output json prints each change on one line", async () => {
  expect((await watch(["1 offline", "2 offline"], { output: "json", isTTY: true })).out).toBe(
    '"1 offline"\n"2 offline"\n',
  );
});

test("--watch continues after a failure", async () => {
  expect(await watch(["1 offline", new CommandFailure("no daemon is reachable"), "1 offline"])).toMatchObject({
    out: "1 offline\n1 offline\n",
    err: "proxywarden: no daemon is reachable\n",
  });
});

test("--watch prints notes again when they have changed, and repeats the value only on a terminal, which it clears", async () => {
  const values = ["not read yet", "not read yet", "unauthorized"].map((note) => ({ value: "no nodes", notes: [note] }));
  const notes = "proxywarden: not read yet\nproxywarden: unauthorized\n";
  expect(await watch(values)).toMatchObject({ out: "no nodes\n", err: notes });
  const screen = "\u{1b}[2J\u{1b}[Hno nodes\n";
  expect(await watch(values, { isTTY: true })).toMatchObject({ out: screen + screen, err: notes });
});

test("--watch leaves what it has printed if it is stopped during a read", async () => {
  const values = ["1 offline", new CommandFailure("the call was canceled")];
  const screen = "\u{1b}[2J\u{1b}[H1 offline\n";
  expect(await watch(values, { isTTY: true, stopsInRead: true })).toMatchObject({ out: screen, err: "" });
});
