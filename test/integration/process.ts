import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { DurationMs } from "../../src/base/duration.ts";
import { waitUntil } from "./wait-until.ts";

/** Exit code and output of a process. */
export interface ProcessResult {
  /** Null: a signal ended it. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A running process. */
export interface RunningProcess {
  readonly pid: number;
  out(): string;
  err(): string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when the process has ended and its output is read. */
  readonly ended: Promise<ProcessResult>;
}

/**
 * Starts a program that is killed after the test. `environment`: variables in addition to those of every test process.
 */
export function startProcess(
  program: string,
  args: readonly string[],
  input = "",
  environment: object = {},
): RunningProcess {
  const started = spawnProcess(program, args, input, environment);
  onTestFinished(async () => {
    started.kill("SIGKILL");
    await started.ended;
  });
  return started;
}

/** Like {@link startProcess}, but the caller ends the process. */
export function spawnProcess(
  program: string,
  args: readonly string[],
  input = "",
  environment: object = {},
): RunningProcess {
  const child: ChildProcess = spawn(program, args, { stdio: "pipe", env: { ...baseEnvironment(), ...environment } });
  const texts = { out: "", err: "" };
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    texts.out += text;
  });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    texts.err += text;
  });
  const ended = new Promise<ProcessResult>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, ...texts }));
  });
  // An error is not unhandled if no test waits for the end.
  ended.catch(() => undefined);
  // A process that reads no input may end before the input is written.
  child.stdin!.on("error", () => undefined).end(input);
  return {
    pid: child.pid!,
    out: () => texts.out,
    err: () => texts.err,
    kill: (signal) => void child.kill(signal),
    ended,
  };
}

/** A separate environment, because the test runner sets variables that change Node's output. */
const baseEnvironment = () => ({ PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR });

/** The environment of processes that share compiled code, with which they start in less than half the time. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)),
};

/** Starts a TypeScript file of the checkout. */
export const startScript = (script: string, args: readonly string[], environment: object = {}): RunningProcess =>
  startProcess(process.execPath, [script, ...args], "", { ...COMPILE_CACHE, ...environment });

/** The command line from the checkout. */
const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Starts a command of proxywarden. */
export const startCommand = (...args: readonly string[]): RunningProcess => startScript(MAIN, args);

/** Runs a command of proxywarden until it ends. */
export const runCommand = (...args: readonly string[]): Promise<ProcessResult> => startCommand(...args).ended;

/** Waits for standard error to match `pattern`, and returns the first match. */
export function waitForStderr({ err }: RunningProcess, pattern: RegExp, waitMs?: DurationMs): Promise<RegExpExecArray> {
  return waitUntil(
    () => `standard error matches ${pattern}; it is:\n${err()}`,
    () => pattern.exec(err()),
    waitMs,
  );
}

/** Returns the path of a file from a Debian package. Throws with the package to install if it is missing. */
export function requireProgram(path: string, debianPackage: string): string {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    throw new Error(`${path} is missing: apt-get install ${debianPackage}`);
  }
}

/** Runs a program and returns its output. Throws with its output unless it exits with 0. */
export async function runProgram(path: string, args: readonly string[], input: string): Promise<string> {
  const { code, out, err } = await startProcess(path, args, input).ended;
  if (code !== 0) throw new Error(`${path} exited with ${code}:\n${err}${out}`);
  return out + err;
}
