import type { Command } from "commander";
import { bashScript, fishScript, zshScript } from "./completion/shell-scripts.ts";
import { completedCommands } from "./completion/tree.ts";
import { type CommandContext, EXIT_OK, type ExitCode } from "./context.ts";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** A shell that commands can be completed in. */
export type Shell = keyof typeof scripts;

/** Every such shell. */
export const SHELLS = Object.keys(scripts) as readonly Shell[];

/** `completion SHELL`: a script that completes what `program` offers. */
export async function runCompletion(shell: Shell, program: Command, { out }: CommandContext): Promise<ExitCode> {
  out.write(scripts[shell](completedCommands(program)));
  return EXIT_OK;
}
