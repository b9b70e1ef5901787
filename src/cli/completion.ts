import type { Argument, Command, Option } from "commander";
import { type CommandContext, EXIT_OK, type ExitCode } from "./context.ts";
import { bashScript, fishScript, zshScript } from "./output/completion-scripts.ts";

/** Values to complete: files, the given words, or nothing (`none`). */
export type CompletionValues = "file" | "none" | readonly string[];

/** An option as a shell completes it. */
export interface CompletedOption {
  /** The long form, such as `--config`. */
  readonly name: string;
  readonly description: string;
  /** Null if it takes no value. */
  readonly values: CompletionValues | null;
}

/** A command as a shell completes it. */
export interface CompletedCommand {
  /** Such as `proxywarden policy diff`. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** Values of its arguments, or null if it has none. */
  readonly values: CompletionValues | null;
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** A shell with command completion. */
export type Shell = keyof typeof SCRIPTS;

/** Every supported shell. */
export const SHELLS = Object.keys(SCRIPTS) as readonly Shell[];

/** `completion SHELL`: prints a script that completes the commands and options of `program`. */
export async function runCompletion(shell: Shell, program: Command, { out }: CommandContext): Promise<ExitCode> {
  out.write(SCRIPTS[shell](completedCommands(program)));
  return EXIT_OK;
}

/** Names of values in the help that are files. Other values without choices are not completed. */
const FILE_ARGUMENT_NAMES: readonly string[] = ["file", "files", "old", "new"];

/** Returns a program and all its commands, each with the options that all commands share. */
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
  const subcommands = help.visibleCommands(command);
  const names = subcommands.map((subcommand) => subcommand.name());
  const inheritable = [...command.options.filter(({ long }) => long !== "--version"), ...inherited];
  return [
    {
      path,
      commands: subcommands.map((subcommand) => ({ name: subcommand.name(), description: subcommand.description() })),
      options: [...help.visibleOptions(command), ...inherited].flatMap(completedOption),
      values: command.name() === "help" ? siblings : firstArgumentValues(command.registeredArguments),
    },
    ...subcommands.flatMap((subcommand) => completeCommand(subcommand, path, names, inheritable)),
  ];
}

/** Returns the values of the first argument; the others have the same. */
function firstArgumentValues([first]: readonly Argument[]): CompletionValues | null {
  return first === undefined ? null : valuesOf(first.name(), first.argChoices);
}

function completedOption({ long, description, required, optional, argChoices, flags }: Option): CompletedOption[] {
  if (!long) return [];
  const [, name = ""] = /[<[]([\w-]+)/.exec(flags) ?? [];
  return [{ name: long, description, values: required || optional ? valuesOf(name, argChoices) : null }];
}

function valuesOf(name: string, choices: readonly string[] | undefined): CompletionValues {
  return choices ?? (FILE_ARGUMENT_NAMES.includes(name) ? "file" : "none");
}
