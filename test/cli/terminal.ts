import { type CommandContext, CommandFailure, EXIT_OK, type ExitCode, reportFailure } from "../../src/cli/context.ts";
import { runCommandLine } from "../../src/cli/program.ts";

/** Exit code and output of a command. */
export interface CommandOutput {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this process and captures its output. `env`: its environment. Rejects with what is no failure. */
export async function captureOutput(
  run: (context: CommandContext) => Promise<unknown>,
  env: Readonly<Record<string, string>> = {},
): Promise<CommandOutput> {
  const texts = { out: "", err: "" };
  const into = (stream: keyof typeof texts) => ({
    write(text: string) {
      texts[stream] += text;
    },
  });
  const context: CommandContext = {
    env,
    out: into("out"),
    err: into("err"),
    stop: new AbortController().signal,
    onSighup() {},
    version: "0.0.0-test",
  };
  const code = await run(context).catch((error: unknown) => {
    if (error instanceof CommandFailure) return reportFailure(error, context);
    throw error;
  });
  return { code: (code ?? EXIT_OK) as ExitCode, ...texts };
}

/** Runs a command line in this process, which takes much less time than a process of its own. */
export const runInProcess = (...args: readonly string[]): Promise<CommandOutput> =>
  captureOutput((context) => runCommandLine(args, context));
