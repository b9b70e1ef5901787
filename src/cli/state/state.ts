import { constants } from "node:buffer";
import { createReadStream, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { errorMessage, fail } from "../../base/result.ts";
import { loadStateSection } from "../../config/load.ts";
import { exportLines, parseExport } from "../../journal/state-export.ts";
import { readTextStream, STANDARD_STREAM } from "../../platform/text-file.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { readSource } from "../config/config-loading.ts";
import { type CommandContext, CommandFailure, orFail, orStopped } from "../context.ts";
import { importConfiguredState, readConfiguredState } from "./state-store.ts";

interface StateOptions {
  readonly config: string;
}

/** `state export FILE`: writes the state of a configuration as lines of JSON, even while daemons use it. */
export async function runStateExport(
  { config }: StateOptions,
  context: CommandContext,
  [path]: readonly string[],
): Promise<void> {
  const file = path === STANDARD_STREAM ? path : replacedFile(path!);
  const state = orFail(loadStateSection(orFail(readSource(config, context.env))));
  const exported = await readConfiguredState(state, async (reader) => {
    const lines = exportLines(reader.rows());
    if (file === STANDARD_STREAM) for await (const line of lines) context.out.write(line);
    else await writeFileWhole(file!, lines, context.stop);
  }).catch((error: unknown) => fail(`the state can't be exported: ${errorMessage(error)}`));
  orFail(exported);
}

/**
 * Returns the file that an export to a path creates or replaces: that to which a symbolic link leads. Throws
 * {@link CommandFailure} if there is something else, such as a device or a pipe, which would be replaced as well.
 */
function replacedFile(path: string): string {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing === undefined) return path;
  if (existing.isFile()) return realpathSync(path);
  throw new CommandFailure(`${path} is not a regular file; ${STANDARD_STREAM} stands for standard output`);
}

/**
 * `state import FILE`: writes an exported state into the empty state of a configuration. Writes all of it or nothing.
 */
export async function runStateImport(
  { config }: StateOptions,
  context: CommandContext,
  [file]: readonly string[],
): Promise<void> {
  const state = orFail(loadStateSection(orFail(readSource(config, context.env))));
  const [name, stream] =
    file === STANDARD_STREAM ? ["standard input", process.stdin] : [file!, createReadStream(file!)];
  const text = await orStopped(readTextStream(stream, constants.MAX_STRING_LENGTH), context.stop);
  if (!text.ok) throw new CommandFailure(`can't read ${name}: ${text.error}`);
  const rows = parseExport(text.value);
  if (!rows.ok) throw new CommandFailure(`${name} can't be imported: ${rows.error}`);
  const imported = await importConfiguredState(state, rows.value);
  if (!imported.ok) throw new CommandFailure(`${name} can't be imported: ${imported.error}; nothing was written`);
  context.err.write(`imported ${countNoun(rows.value.length, "row")}\n`);
}

/**
 * Writes lines to a file. An existing file is replaced only once all lines are written. Rejects if `stop` aborts before
 * that.
 */
async function writeFileWhole(file: string, lines: AsyncIterable<string>, stop: AbortSignal): Promise<void> {
  const unfinished = `${file}.unfinished`;
  try {
    writeFileSync(unfinished, "", { mode: 0o600 });
    for await (const line of lines) {
      if (stop.aborted) throw new Error("stopped");
      writeFileSync(unfinished, line, { flag: "a" });
    }
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}
