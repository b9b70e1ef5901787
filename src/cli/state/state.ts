import { constants } from "node:buffer";
import { createReadStream, renameSync, rmSync, writeFileSync } from "node:fs";
import { errorMessage } from "../../base/result.ts";
import { exportLines, parseExport } from "../../journal/state-export.ts";
import { readTextStream, STANDARD_INPUT } from "../../platform/text-file.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { readStateSection } from "../config/config-loading.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith } from "../context.ts";
import { importConfiguredState, readConfiguredState } from "./state-store.ts";

interface StateOptions {
  readonly config: string;
}

/** `state export FILE`: writes the state of a configuration as lines of JSON. Daemons may be using it. */
export async function runStateExport(
  { config }: StateOptions,
  context: CommandContext,
  [file]: readonly string[],
): Promise<ExitCode> {
  const read = readStateSection(config, context.env);
  if (!read.ok) return failWith(context, read.error);
  try {
    const exported = await readConfiguredState(read.value, async (reader) => {
      const lines = exportLines(reader.rows());
      if (file === STANDARD_INPUT) for await (const line of lines) context.out.write(line);
      else await writeFileWhole(file!, lines);
    });
    return exported.ok ? EXIT_OK : failWith(context, exported.error.message);
  } catch (error) {
    return failWith(context, `the state can't be exported: ${errorMessage(error)}`);
  }
}

/**
 * `state import FILE`: writes an exported state into the empty state of a configuration, either all of it or nothing.
 */
export async function runStateImport(
  { config }: StateOptions,
  context: CommandContext,
  [file]: readonly string[],
): Promise<ExitCode> {
  const read = readStateSection(config, context.env);
  if (!read.ok) return failWith(context, read.error);
  const [name, stream] = file === STANDARD_INPUT ? ["standard input", process.stdin] : [file!, createReadStream(file!)];
  const text = await readTextStream(stream, constants.MAX_STRING_LENGTH);
  if (!text.ok) return failWith(context, `can't read ${name}: ${text.error}`);
  const rows = parseExport(text.value);
  if (!rows.ok) return failWith(context, `${name} can't be imported: ${rows.error}`);
  const imported = await importConfiguredState(read.value, rows.value);
  if (!imported.ok) return failWith(context, `${name} can't be imported: ${imported.error}; nothing was written`);
  context.err.write(`imported ${countNoun(rows.value.length, "row")}\n`);
  return EXIT_OK;
}

/** Replaces a file, but only after all lines are written. */
async function writeFileWhole(file: string, lines: AsyncIterable<string>): Promise<void> {
  const unfinished = `${file}.unfinished`;
  try {
    writeFileSync(unfinished, "", { mode: 0o600 });
    for await (const line of lines) writeFileSync(unfinished, line, { flag: "a" });
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}
