import { Command, Option } from "commander";
import { describe, expect, test } from "vitest";
import { candidatesFor, runCompletion, SHELLS, type Shell } from "../../src/cli/completion.ts";
import { createProgram } from "../../src/cli/program.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { runProgram } from "../integration/process.ts";
import { captureOutput, runInProcess } from "./terminal.ts";

/** Returns the program whose words are completed. */
async function realProgram(): Promise<Command> {
  const programs: Command[] = [];
  await captureOutput(async (context) => {
    programs.push(createProgram(context));
    return 0;
  });
  return programs[0]!;
}

const wordsFor = (typed: string, program: Command): readonly string[] =>
  candidatesFor(typed.split(" ").slice(1), program).map(({ word }) => word);

describe("the words that may be typed", async () => {
  const program = await realProgram();

  test.each<readonly [typed: string, words: readonly string[]]>([
    ["proxywarden check --output ", ["text", "json"]],
    ["proxywarden check --output = j", ["text", "json"]],
    ["proxywarden check --output =", ["text", "json"]],
    ["proxywarden check --output=j", ["--output=text", "--output=json"]],
    ["proxywarden completion ", ["bash", "zsh", "fish"]],
    ["proxywarden check --config ", [":files"]],
    ["proxywarden check --config=c", [":files"]],
    ["proxywarden policy diff ", [":files"]],
    ["proxywarden pause --reason ", []],
    ["proxywarden help policy ", ["test", "diff", "backtest"]],
    ["proxywarden help policy te", ["test", "diff", "backtest"]],
    ["proxywarden help explain ", ["--help", "--debug", "--color", "--no-color"]],
    ["proxywarden policy backtest --policies a.yaml ", [":files"]],
    ["proxywarden policy backtest --policies a.yaml b", [":files"]],
    ["proxywarden policy backtest --policies a.yaml --output ", ["text", "json"]],
  ])("after %j are %j", (typed, words) => {
    expect(wordsFor(typed, program)).toEqual(words);
  });

  test.each<readonly [typed: string, words: readonly string[]]>([
    ["proxywarden ", ["check", "resume", "policy"]],
    ["proxywarden help expl", ["explain", "policy"]],
    ["proxywarden policy ", ["test", "diff", "backtest"]],
    ["proxywarden --no", ["--no-color", "--version"]],
    ["proxywarden --debug check --o", ["--output", "--help", "--debug"]],
    ["proxywarden approve --d", ["--debug"]],
    ["proxywarden run ", ["--config"]],
    ["proxywarden policy backtest --policies a.yaml --", ["--output", "--since"]],
    // The word is the value of --reason, not a command.
    ["proxywarden pause --reason check --ur", ["--url", "--for"]],
  ])("after %j include %j", (typed, words) => {
    expect(wordsFor(typed, program)).toEqual(expect.arrayContaining([...words]));
  });

  test("are the options of the command first, then those of the commands around it", () => {
    const nested = new Command("proxywarden").option("--debug", "traces").version("1");
    const policy = nested.command("policy").description("policies");
    policy.command("diff <old> <new>").description("what differs").option("--short", "less");
    nested.command("test <files...>").addOption(new Option("--seed <seed>").choices(["one", "two"]));
    expect(wordsFor("proxywarden policy d", nested)).toEqual(["diff", "help"]);
    expect(wordsFor("proxywarden policy diff a.yaml -", nested)).toEqual(["--short", "--help", "--debug"]);
    expect(wordsFor("proxywarden test --seed ", nested)).toEqual(["one", "two"]);
  });

  test("have the descriptions of the help", async () => {
    const { out } = await runInProcess("completion", "fish", "--", "check", "--o");
    expect(out).toContain("\n--output\toutput format\n");
    expect((await runInProcess("completion", "fish", "--", "che")).out).toContain(
      "check\tcheck a configuration: list every error with its line and column\n",
    );
  });
});

/** Returns what a real bash offers for the last word, which may be empty, if the program prints `candidates`. */
async function offered(words: readonly string[], candidates: string, cwd = "/"): Promise<readonly string[]> {
  const { out: script } = await runInProcess("completion", "bash");
  const completion = `proxywarden() { printf '%s' '${candidates}'; }
cd "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _proxywarden; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = await runProgram("bash", ["--norc", "-c", `${script}\n${completion}`, "bash", cwd, ...words], "");
  return output.split("\n").filter((line) => line !== "");
}

describe("a real bash", () => {
  test("offers the words that begin like the last one", async () => {
    const commands = "check\tcheck it\nchange\t\npause\tpause it\n";
    expect(await offered(["proxywarden", "ch"], commands)).toEqual(["check", "change"]);
    expect(await offered(["proxywarden", ""], commands)).toEqual(["check", "change", "pause"]);
    expect(await offered(["proxywarden", "check", "--output", "="], "text\t\njson\t\n")).toEqual(["text", "json"]);
  });

  test("offers files, including those with a blank in their name", async () => {
    const folder = createTempFolder();
    folder.write("my config.yaml", "");
    folder.write("other.yaml", "");
    const files = ":files\t\n";
    const all = await offered(["proxywarden", "run", "--config", ""], files, folder.path);
    expect(all.toSorted()).toEqual(["my config.yaml", "other.yaml"]);
    expect(await offered(["proxywarden", "run", "--config", "=", "o"], files, folder.path)).toEqual(["other.yaml"]);
  });

  test("gives the program the words up to the cursor", async () => {
    const { out: script } = await runInProcess("completion", "bash");
    const completion = `proxywarden() { printf '%s|' "$@" >&3; }
COMP_WORDS=(proxywarden policy "" later) COMP_CWORD=2; _proxywarden 3>&1`;
    expect(await runProgram("bash", ["--norc", "-c", `${script}\n${completion}`], "")).toBe(
      "completion|bash|--|policy||",
    );
  });
});

test.each(SHELLS)("the script for %s asks the program, and completes files itself", async (shell: Shell) => {
  const { out } = await captureOutput(async (context) => runCompletion(shell, [], await realProgram(), context));
  expect(out).toContain(`proxywarden completion ${shell} -- `);
  expect(out).toContain(":files*");
});
