import { styleText } from "node:util";
import type { Command } from "commander";
import { nearest } from "../../base/nearest-word.ts";
import { withoutCredentials } from "../../config/diagnostics/problem.ts";
import type { CommandContext } from "../context.ts";
import { type ColorOption, supportsColor, withColorOption } from "../output/text.ts";

/** Applies the settings that all commands share: output streams, colors and the format of usage errors. */
export function withSharedBehavior(
  command: Command,
  { out, err, env }: CommandContext,
  colorOption: () => ColorOption,
): Command {
  const styleTitle = (text: string) => styleText("bold", text, { validateStream: false });
  return command
    .exitOverride()
    .configureHelp({ styleTitle })
    .configureOutput({
      writeOut: (text) => out.write(text),
      writeErr: (text) => err.write(text),
      getOutHasColors: () => supportsColor(out, withColorOption(env, colorOption())),
      getErrHasColors: () => supportsColor(err, withColorOption(env, colorOption())),
      outputError: (text, write) =>
        write(`proxywarden: ${formatUsageError(text, command)} (see ${commandPath(command)} --help)\n`),
    });
}

/** Prints the help of the command with these names. An unknown name is a usage error. */
export function printHelp(command: Command, [name, ...rest]: readonly string[]): void {
  if (name === undefined) {
    command.outputHelp();
    return;
  }
  const next = command.commands.find((subcommand) => subcommand.name() === name);
  if (next !== undefined) {
    printHelp(next, rest);
    return;
  }
  const names = command.commands.map((subcommand) => subcommand.name());
  const meant = nearest(name, names);
  command.error(`error: unknown command '${name}'${meant === null ? "" : `\n(Did you mean ${meant}?)`}`);
}

/** Returns the full command, such as `npm start -- check`. */
const commandPath = (command: Command): string =>
  command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;

/** Puts commander's error and suggestion on one line. Suggests `policy test` for `test`. */
function formatUsageError(text: string, command: Command): string {
  const [wrong = "", suggestion] = text.trim().split("\n");
  const plain = withoutCredentials(wrong)
    .replace(/^error: /, "")
    .replace(/\.$/, "");
  const [, name] = /^unknown command '(.*)'$/.exec(plain) ?? [];
  const group = command.commands.find(({ commands }) => commands.some((subcommand) => subcommand.name() === name));
  if (group !== undefined) return `${plain}; did you mean ${group.name()} ${name}?`;
  return suggestion === undefined ? plain : `${plain}; ${suggestion.replace(/^\(Did/, "did").replace(/\)$/, "")}`;
}
