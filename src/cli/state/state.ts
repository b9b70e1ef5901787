import { constants } from "node:buffer";
import {
  appendFileSync,
  createReadStream,
  lstatSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { loadStateSection } from "../../config/load.ts";
import { exportLines, parseExport, type StateReader } from "../../journal/state-export.ts";
import { nextTurn } from "../../platform/event-loop.ts";
import { readTextStream, STANDARD_STREAM } from "../../platform/text-file.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { readSource } from "../config/config-loading.ts";
import { type CommandContext, CommandFailure, failWith, orFail, orStopped, stopFailure } from "../context.ts";
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
  const file = path === STANDARD_STREAM ? null : replacedFile(path!);
  const unfinished = `${file}.unfinished`;
  const removeUnfinished = () => file !== null && rmSync(unfinished, { force: true });
  const state = orFail(loadStateSection(orFail(readSource(config, context.env))));
  async function write(reader: StateReader): Promise<void> {
    const lines = untilStopped(exportLines(reader.rows()), context.stop);
    removeUnfinished();
    for await (const line of lines) {
      if (file === null) context.out.write(line);
      else appendFileSync(unfinished, line, { mode: 0o600 });
    }
    // An existing file is replaced only once all lines are written.
    if (file !== null) renameSync(unfinished, file);
  }
  const exported = await readConfiguredState(state, write, context.stop)
    .finally(removeUnfinished)
    .catch(failWith("the state can't be exported"));
  orFail(exported);
}

/** Number of lines that are written in one turn of the event loop, which takes a few milliseconds. */
const LINES_PER_TURN = 500;

/** Yields lines, and lets the process handle signals meanwhile. Throws {@link CommandFailure} once `stop` aborts. */
async function* untilStopped(lines: AsyncIterable<string>, stop: AbortSignal): AsyncGenerator<string> {
  let count = 0;
  for await (const line of lines) {
    // SQLite reads without waiting, so the event loop would not turn before the last line.
    if (count++ % LINES_PER_TURN === 0) await nextTurn();
    if (stop.aborted) throw stopFailure(stop);
    yield line;
  }
}

/**
 * Returns the file that an export to a path creates or replaces: that to which a symbolic link leads. Throws
 * {@link CommandFailure} if there is something else, such as a device or a pipe, which would be replaced as well.
 */
function replacedFile(path: string): string {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isFile()) return realpathSync(path);
  if (existing !== undefined)
    throw new CommandFailure(`${path} is not a regular file; ${STANDARD_STREAM} stands for standard output`);
  // A link may lead to a file that does not exist yet.
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? replacedFile(resolve(realpathSync(dirname(path)), readlinkSync(path))) : path;
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
  const imported = await importConfiguredState(state, rows.value, context.stop);
  if (!imported.ok) throw new CommandFailure(`${name} can't be imported: ${imported.error}; nothing was written`);
  context.err.write(`imported ${countNoun(rows.value.length, "row")}\n`);
}
