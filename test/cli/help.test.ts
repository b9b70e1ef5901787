import { CommanderError } from "commander";
import { expect, test } from "vitest";
import { EXIT_OK, EXIT_USAGE } from "../../src/cli/context.ts";
import { createProgram } from "../../src/cli/program.ts";
import { parseCommand } from "../deploy/manifest.ts";
import { captureOutput } from "./terminal.ts";

/** Runs a command line in this process. Rejects with what the command throws. */
const runCommandLine = (usage: string) =>
  captureOutput(async (context) => {
    const program = createProgram(context);
    return await program.parseAsync(usage.split(" "), { from: "user" }).then(
      () => EXIT_OK,
      (error: unknown) => {
        if (!(error instanceof CommanderError)) throw error;
        return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
      },
    );
  });

/** Splits a shell command into words, and removes the quotes. */
const words = (text: string): string[] =>
  [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);

const commandNames = async (): Promise<string[]> => {
  const names: string[] = [];
  await captureOutput(async (context) => {
    names.push(...createProgram(context).commands.map((command) => command.name()));
    return EXIT_OK;
  });
  return names;
};

test.each([...(await commandNames()), "policy diff", "policy test", "policy backtest"])(
  "%s --help shows a valid example of the command",
  async (name) => {
    const { code, out, err } = await runCommandLine(`${name} --help`);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const examples = [...out.matchAll(/^ {2}\$ npm start -- (.*)$/gm)].map(([, usage]) => usage!.replace(/ > .*/, ""));
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples)
      expect((await parseCommand(words(example))).name).toMatch(new RegExp(`^${name}( |$)`));
  },
);

test("--help lists every command, examples and the exit codes", async () => {
  const { out } = await runCommandLine("--help");
  for (const name of await commandNames()) expect(out).toMatch(new RegExp(`^  ${name} `, "m"));
  const examples = [...out.matchAll(/^ {2}\$ npm start -- (.*?) {2,}/gm)].map(([, usage]) => usage!);
  expect(examples.length).toBeGreaterThan(2);
  for (const example of examples) await parseCommand(words(example));
  expect(out).toContain("0 success; 1 the check or operation failed; 2 usage error");
});

test("completion --help shows only the argument that a user gives", async () => {
  expect((await runCommandLine("completion --help")).out).toMatch(
    /^Usage: npm start -- completion \[options\] <shell>\n/,
  );
});

test("help COMMAND prints the command's --help; help alone prints the program's", async () => {
  expect(await runCommandLine("help explain")).toEqual(await runCommandLine("explain --help"));
  expect(await runCommandLine("help")).toEqual(await runCommandLine("--help"));
});

test.each<readonly [usage: string, message: string]>([
  ["chek", "unknown command 'chek'; did you mean check? (see npm start -- --help)"],
  ["help chek", "unknown command 'chek'; did you mean check? (see npm start -- --help)"],
  ["help zzz", "unknown command 'zzz' (see npm start -- --help)"],
  ["check --confg x", "unknown option '--confg'; did you mean --config? (see npm start -- check --help)"],
  ["explain", "missing required argument 'node' (see npm start -- explain --help)"],
  [
    "completion tcsh",
    "command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish (see npm start -- completion --help)",
  ],
])("a usage error is one line on standard error that says what to do: %s", async (usage, message) => {
  expect(await runCommandLine(usage)).toEqual({ code: 2, out: "", err: `proxywarden: ${message}\n` });
});
