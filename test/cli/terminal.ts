import type { CommandContext, ExitCode } from "../../src/cli/context.ts";
import { runCommandLine } from "../../src/cli/program.ts";

/** Exit code and output of a command. */
export interface CommandOutput {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this process and captures its output. `env`: its environment. */
export async function captureOutput(
  run: (context: CommandContext) => Promise<ExitCode>,
  env: Readonly<Record<string, string>> = {},
): Promise<CommandOutput> {
  const texts = { out: "", err: "" };
  const into = (stream: keyof typeof texts) => ({
    write(text: string) {
      texts[stream] += text;
    },
  });
  const code = await run({
    env,
    out: into("out"),
    err: into("err"),
    stop: new AbortController().signal,
    onSighup() {},
    version: "0.0.0-test",
  });
  return { code, ...texts };
}

/** Runs a command line in this process, which takes much less time than a process of its own. */
export const runInProcess = (...args: readonly string[]): Promise<CommandOutput> =>
  captureOutput((context) => runCommandLine(args, context));
