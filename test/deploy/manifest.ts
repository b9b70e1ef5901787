import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { parseAllDocuments } from "yaml";
import { parseConfig } from "../../src/cli/config/config-loading.ts";
import { createProgram } from "../../src/cli/program.ts";
import type { LoadedConfig } from "../../src/config/load.ts";
import { readTextFile } from "../../src/platform/text-file.ts";
import { orThrow } from "../harness/or-throw.ts";

/** A path of the repository, as an absolute one. */
export const inRepository = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Returns whether the repository has a file or folder at `path`. */
export const isInRepository = (path: string): boolean => existsSync(inRepository(path));

/** Text of a file of the repository. */
export function textOf(path: string): string {
  return orThrow(readTextFile(inRepository(path)));
}

/** The documents of a YAML file, merge keys resolved as Compose and Kubernetes do. */
export function documentsOf<T>(path: string): readonly T[] {
  return parseAllDocuments(textOf(path), { merge: true, uniqueKeys: true }).map((document) => {
    const [error] = "errors" in document ? document.errors : [];
    if (error !== undefined) throw error;
    return document.toJS() as T;
  });
}

/** The only document of a YAML file. */
export function documentOf<T>(path: string): T {
  const [document, ...rest] = documentsOf<T>(path);
  if (document === undefined || rest.length > 0) throw new Error(`${path} has ${rest.length + 1} documents`);
  return document;
}

/**
 * Loads a configuration of the repository with its policies, and throws if it is invalid. Another file replaces the
 * secrets that are mounted only in a cluster.
 */
export const parseRepositoryConfig = (path: string, env: Readonly<Record<string, string>> = {}): LoadedConfig =>
  parseConfigText(path, textOf(path), env);

/** Does the same with a text in place of the file at `path`. */
export function parseConfigText(path: string, text: string, env: Readonly<Record<string, string>> = {}): LoadedConfig {
  const withSecrets = text.replace(/\/run\/secrets\/[\w/]+/g, inRepository("deploy/compose/simulation_token"));
  return orThrow(parseConfig(inRepository(path), withSecrets, env));
}

/** A command line as our own program reads it, without running it. */
export interface ParsedCommand {
  readonly name: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Reads the arguments that stand after `proxywarden`. Rejects where they are refused. */
export async function parseCommand(args: readonly string[]): Promise<ParsedCommand> {
  const said: string[] = [];
  const into = { write: (text: string) => void said.push(text) };
  const stop = new AbortController().signal;
  const program = createProgram({ env: {}, out: into, err: into, stop, onSighup() {}, version: "0.0.0-test" });
  let read: ParsedCommand | null = null;
  const listen = (command: Command, path: readonly string[]) => {
    for (const subcommand of command.commands) listen(subcommand, [...path, subcommand.name()]);
    if (command.commands.length > 0) return;
    command.action(() => {
      read = { name: path.join(" "), options: command.opts() };
    });
  };
  listen(program, []);
  await program.parseAsync([...args], { from: "user" }).catch(() => {});
  if (read === null) throw new Error(`proxywarden ${args.join(" ")}: ${said.join("")}`);
  return read;
}
