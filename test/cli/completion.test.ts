import { Command, Option } from "commander";
import { describe, expect, test } from "vitest";
import { bashScript, completedCommands, runCompletion, SHELLS, type Shell } from "../../src/cli/completion.ts";
import { createProgram } from "../../src/cli/program.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { runProgram } from "../integration/process.ts";
import { captureOutput } from "./terminal.ts";

const scriptFor = async (shell: Shell): Promise<string> =>
  (
    await captureOutput((context) =>
      runCompletion(
        shell,
        createProgram(context, () => {}),
        context,
      ),
    )
  ).out;

/** Returns what a real bash offers for the last word, which may be empty. */
async function offered(script: string, words: readonly string[], cwd = "/"): Promise<readonly string[]> {
  const completion = `cd "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _proxywarden; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = await runProgram("bash", ["--norc", "-c", `${script}\n${completion}`, "bash", cwd, ...words], "");
  return output.split("\n").filter((line) => line !== "");
}

describe("in a real bash", async () => {
  const script = await scriptFor("bash");

  test.each<readonly [typed: string, offers: readonly string[]]>([
    ["proxywarden che", ["check"]],
    ["proxywarden re", ["resume", "reject", "release", "reset-breaker"]],
    ["proxywarden --no", ["--no-color"]],
    ["proxywarden --debug check --o", ["--output"]],
    ["proxywarden check --output ", ["text", "json"]],
    ["proxywarden check --output = j", ["json"]],
    ["proxywarden check --output =", ["text", "json"]],
    ["proxywarden check --out", ["--output"]],
    ["proxywarden help expl", ["explain"]],
    ["proxywarden completion ", ["bash", "zsh", "fish"]],
    ["proxywarden pause --reason ", []],
    ["proxywarden approve --d", ["--debug"]],
    // The word is the value of --reason, not a command.
    ["proxywarden pause --reason check --ur", ["--url"]],
  ])("%s", async (typed, offers) => {
    expect(await offered(script, typed.split(" "))).toEqual(offers);
  });

  test("completes files, including those with a blank in their name", async () => {
    const folder = createTempFolder();
    folder.write("my config.yaml", "");
    folder.write("other.yaml", "");
    const config = await offered(script, ["proxywarden", "run", "--config", ""], folder.path);
    expect(config.toSorted()).toEqual(["my config.yaml", "other.yaml"]);
    expect(await offered(script, ["proxywarden", "simulate", "--scenario", "=", "o"], folder.path)).toEqual([
      "other.yaml",
    ]);
    expect(await offered(script, ["proxywarden", "run", "o"], folder.path)).toEqual([]);
  });

  test("completes subcommands, and files as arguments", async () => {
    const program = new Command("proxywarden").option("--debug", "traces");
    const policy = program.command("policy").description("policies");
    policy.command("diff <old> <new>").description("what differs").option("--short", "less");
    program.command("test <files...>").addOption(new Option("--seed <seed>").choices(["one", "two"]));
    const nested = bashScript(completedCommands(program));
    const folder = createTempFolder();
    folder.write("a.yaml", "");
    expect(await offered(nested, ["proxywarden", "policy", "d"])).toEqual(["diff"]);
    expect(await offered(nested, ["proxywarden", "policy", "diff", ""], folder.path)).toEqual(["a.yaml"]);
    expect(await offered(nested, ["proxywarden", "policy", "diff", "a.yaml", "-"])).toEqual([
      "--short",
      "--help",
      "--debug",
    ]);
    expect(await offered(nested, ["proxywarden", "test", ""], folder.path)).toEqual(["a.yaml"]);
    expect(await offered(nested, ["proxywarden", "test", "--seed", ""])).toEqual(["one", "two"]);
  });
});

describe.each(SHELLS)("the script for %s", (shell) => {
  test("knows every command and every option of the program", async () => {
    const script = await scriptFor(shell);
    await captureOutput(async (context) => {
      for (const { path, options } of completedCommands(createProgram(context, () => {}))) {
        expect(script).toContain(shell === "zsh" ? `_${path.replaceAll(" ", "__")}() {` : `${path}`);
        for (const { name } of options) expect(script).toContain(shell === "fish" ? ` -l ${name.slice(2)} ` : name);
      }
      return 0;
    });
  });
});

test("the zsh script escapes special characters", async () => {
  const script = await scriptFor("zsh");
  expect(script).toMatch(/^#compdef proxywarden\n/);
  expect(script).toContain("'check:check a configuration\\: list every error with its line and column'");
  expect(script).toContain(
    "'--at=[explain the state at this time, such as 2026-11-21T03\\:12\\:00Z, or this long ago, such as 2h]:value: '",
  );
  expect(script).toContain("'--output=[output format]:value:(text json)'");
  expect(script).toContain("'--config=[the configuration]:value:_files'");
});

test("the fish script distinguishes files, words and free values of options", async () => {
  const script = await scriptFor("fish");
  const at = (path: string) => `complete -c proxywarden -n '__proxywarden_at "proxywarden ${path}"'`;
  expect(script).toContain(`${at("check")} -l config -r -F -d 'the configuration'`);
  expect(script).toContain(`${at("check")} -l output -x -a 'text json' -d`);
  expect(script).toContain(`${at("pause")} -l reason -x -d`);
  expect(script).toContain(`${at("completion")} -a 'bash zsh fish'`);
});
