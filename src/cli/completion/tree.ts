import type { Argument, Command, Option } from "commander";

/** What may stand somewhere: a file, one of some words, or something that nobody can guess. */
export type CompletionValues = "file" | "guess" | readonly string[];

/** An option as a shell completes it. */
export interface CompletedOption {
  /** Such as `--config`; short forms are not worth completing. */
  readonly name: string;
  readonly description: string;
  /** Null: it takes no value. */
  readonly values: CompletionValues | null;
}

/** A command as a shell completes it. */
export interface CompletedCommand {
  /** As it is typed, such as `proxywarden policy diff`. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** Of what stands behind it; null: nothing does. */
  readonly values: CompletionValues | null;
}

/** Words for values by the name that help gives them. What is not here is a file, or nobody's guess. */
const VALUES_BY_NAME: Readonly<Record<string, readonly string[]>> = { format: ["text", "json"] };
const FILE_ARGUMENT_NAMES: readonly string[] = ["file", "files", "old", "new"];

/** A program and all commands below it, each once; options that hold everywhere are among those of each. */
export const completedCommands = (program: Command): readonly CompletedCommand[] =>
  completeCommand(program, "", [], []);

function completeCommand(
  command: Command,
  parent: string,
  siblings: readonly string[],
  inherited: readonly Option[],
): readonly CompletedCommand[] {
  const help = command.createHelp();
  const path = `${parent} ${command.name()}`.trim();
  const below = help.visibleCommands(command);
  const names = below.map((each) => each.name());
  const lasting = [...command.options.filter(({ long }) => long !== "--version"), ...inherited];
  return [
    {
      path,
      commands: below.map((each) => ({ name: each.name(), description: each.description() })),
      options: [...help.visibleOptions(command), ...inherited].flatMap(completedOption),
      values: command.name() === "help" ? siblings : firstArgumentValues(command.registeredArguments),
    },
    ...below.flatMap((each) => completeCommand(each, path, names, lasting)),
  ];
}

/** Arguments are alike enough: whatever the first may be, the others may. */
function firstArgumentValues([first]: readonly Argument[]): CompletionValues | null {
  return first === undefined ? null : valuesOf(first.name(), first.argChoices);
}

function completedOption({ long, description, required, optional, argChoices, flags }: Option): CompletedOption[] {
  if (!long) return [];
  const [, name = ""] = /[<[]([\w-]+)/.exec(flags) ?? [];
  return [{ name: long, description, values: required || optional ? valuesOf(name, argChoices) : null }];
}

function valuesOf(name: string, choices: readonly string[] | undefined): CompletionValues {
  return choices ?? VALUES_BY_NAME[name] ?? (FILE_ARGUMENT_NAMES.includes(name) ? "file" : "guess");
}
