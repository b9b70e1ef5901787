import { expect, test } from "vitest";
import { EXIT_FINE } from "../../src/cli/context.ts";
import { createProgram } from "../../src/cli/program.ts";
import { readCommand } from "../deploy/manifest.ts";
import { printed } from "./terminal.ts";

/** Runs a command line in this process; whatever it throws is thrown. */
const line = (usage: string) =>
  printed(async (context) => {
    let code = EXIT_FINE as 0 | 1 | 2;
    const program = createProgram(context, (finished) => {
      code = finished;
    });
    await program.parseAsync(usage.split(" "), { from: "user" }).catch((error: { exitCode?: number }) => {
      if (error.exitCode === undefined) throw error;
      code = error.exitCode === 0 ? 0 : 2;
    });
    return code;
  });

/** Words of a shell's line, with quotes taken off. */
const words = (text: string): string[] =>
  [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);

const commandNames = async (): Promise<string[]> => {
  const names: string[] = [];
  await printed(async (context) => {
    names.push(...createProgram(context, () => {}).commands.map((command) => command.name()));
    return EXIT_FINE;
  });
  return names;
};

test.each([...(await commandNames()), "policy diff"])(
  "%s --help shows an example that it would take itself",
  async (name) => {
    const { code, out, err } = await line(`${name} --help`);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const examples = [...out.matchAll(/^ {2}\$ proxywarden (.*)$/gm)].map(([, usage]) => usage!.replace(/ > .*/, ""));
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples)
      expect((await readCommand(words(example))).name).toMatch(new RegExp(`^${name}( |$)`));
  },
);

test("the help of the program names every command, examples and the exit codes", async () => {
  const { out } = await line("--help");
  for (const name of await commandNames()) expect(out).toMatch(new RegExp(`^  ${name} `, "m"));
  const examples = [...out.matchAll(/^ {2}\$ proxywarden (.*?) {2,}/gm)].map(([, usage]) => usage!);
  expect(examples.length).toBeGreaterThan(2);
  for (const example of examples) await readCommand(words(example));
  expect(out).toContain("0: fine; 1: what was asked about is bad; 2: wrong usage");
});

test("help on a command is its --help; on no command it is the program's", async () => {
  expect(await line("help explain")).toEqual(await line("explain --help"));
  expect(await line("help")).toEqual(await line("--help"));
});

test.each<readonly [usage: string, said: string]>([
  ["chek", "unknown command 'chek'; did you mean check? (see proxywarden --help)"],
  ["help chek", "unknown command 'chek'; did you mean check? (see proxywarden --help)"],
  ["help zzz", "unknown command 'zzz' (see proxywarden --help)"],
  ["check --confg x", "unknown option '--confg'; did you mean --config? (see proxywarden check --help)"],
  ["explain", "missing required argument 'node' (see proxywarden explain --help)"],
  [
    "completion tcsh",
    "command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish (see proxywarden completion --help)",
  ],
])("wrong usage is one line on standard error, with the way out: %s", async (usage, said) => {
  expect(await line(usage)).toEqual({ code: 2, out: "", err: `proxywarden: ${said}\n` });
});
