import { expect, test } from "vitest";
import { EXIT_OK } from "../../../src/cli/context.ts";
import type { Output } from "../../../src/cli/output/text.ts";
import { createPaint, supportsColor, withColorOption } from "../../../src/cli/output/text.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { captureOutput } from "../terminal.ts";

const stream = (isTTY: boolean): Output => ({ write() {}, isTTY });
const terminal = stream(true);
const file = stream(false);

test.each<readonly [what: string, Output, env: Record<string, string>, has: boolean]>([
  ["a terminal has colors", terminal, {}, true],
  ["a file has no colors", file, {}, false],
  ["NO_COLOR turns off the colors of a terminal", terminal, { NO_COLOR: "1" }, false],
  ["an empty NO_COLOR is ignored", terminal, { NO_COLOR: "" }, true],
  ["FORCE_COLOR turns on colors for a file", file, { FORCE_COLOR: "1" }, true],
  ["FORCE_COLOR=0 turns off the colors of a terminal", terminal, { FORCE_COLOR: "0" }, false],
  ["NO_COLOR overrides FORCE_COLOR", terminal, { NO_COLOR: "1", FORCE_COLOR: "1" }, false],
  ["a dumb terminal has no colors", terminal, { TERM: "dumb" }, false],
])("%s", (_what, output, env, has) => {
  expect(supportsColor(output, env)).toBe(has);
  expect(createPaint(output, env)("bad", "error")).toBe(has ? "\u{1b}[31merror\u{1b}[39m" : "error");
});

test("--color and --no-color override the environment", () => {
  expect(supportsColor(file, withColorOption({ NO_COLOR: "1" }, true))).toBe(true);
  expect(supportsColor(terminal, withColorOption({ FORCE_COLOR: "1" }, false))).toBe(false);
  expect(supportsColor(terminal, withColorOption({}, undefined))).toBe(true);
});

test.each<readonly [usage: string, env: Record<string, string>, colored: boolean]>([
  ["check --config /none", {}, false],
  ["check --color --config /none", {}, true],
  ["--color check --config /none", { NO_COLOR: "1" }, true],
  ["check --config /none", { FORCE_COLOR: "1" }, true],
  ["check --no-color --config /none", { FORCE_COLOR: "1" }, false],
])("the output of %s with the environment %j is colored: %s", async (usage, env, colored) => {
  const { out } = await captureOutput(async (context) => {
    await createProgram(context).parseAsync(usage.split(" "), { from: "user" });
    return EXIT_OK;
  }, env);
  expect(out).toBe(colored ? "/none: \u{1b}[31m1 error\u{1b}[39m\n" : "/none: 1 error\n");
});
