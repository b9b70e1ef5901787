import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { waitUntil } from "./wait-until.ts";

/** How a process ended. */
export interface ProcessResult {
  /** Null where a signal ended it. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A process at work; one that still is at the end of the test is killed. */
export interface RunningProcess {
  readonly pid: number;
  out(): string;
  err(): string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when it is gone and all its output was read. */
  readonly ended: Promise<ProcessResult>;
}

/** Starts a program. `environment`: what it has beside the usual. */
export function startProcess(
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
  // Whoever waits for its end is told; one that nobody waits for need not be.
  ended.catch(() => undefined);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  // One that reads nothing may be gone before it is given anything.
  child.stdin!.on("error", () => undefined).end(input);
  return {
    pid: child.pid!,
    out: () => texts.out,
    err: () => texts.err,
    kill: (signal) => void child.kill(signal),
    ended,
  };
}

/** A test's own environment is none of the child's business: the runner sets variables that change what Node prints. */
const baseEnvironment = () => ({ PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR });

/** What one child has compiled the next needs not: it starts in half the time. */
const COMPILE_CACHE = fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url));

/** Starts a script of the checkout, run as TypeScript. */
export const startScript = (script: string, ...args: readonly string[]): RunningProcess =>
  startProcess(process.execPath, [script, ...args], "", { NODE_COMPILE_CACHE: COMPILE_CACHE });

/** The command line from the checkout. */
const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Starts a command of proxywarden. */
export const startCommand = (...args: readonly string[]): RunningProcess => startScript(MAIN, ...args);

/** Runs a command of proxywarden to its end. */
export const runCommand = (...args: readonly string[]): Promise<ProcessResult> => startCommand(...args).ended;

/** The first match of `pattern` in what the process says on standard error, once it is there. */
export function waitForStderr({ err }: RunningProcess, pattern: RegExp): Promise<RegExpExecArray> {
  return waitUntil(
    () => `the process says ${pattern}; it said:\n${err()}`,
    () => pattern.exec(err()),
  );
}

/** A file that a package of Debian brings; without it the test fails, and says what to install. */
export function requireProgram(path: string, debianPackage: string): string {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    throw new Error(`${path} is missing: apt-get install ${debianPackage}`);
  }
}

/** Runs a program to its end; what it refuses, it refuses with its own words. */
export async function runProgram(path: string, args: readonly string[], input: string): Promise<string> {
  const { code, out, err } = await startProcess(path, args, input).ended;
  if (code !== 0) throw new Error(`${path} ended with ${code}:\n${err}${out}`);
  return out + err;
}
