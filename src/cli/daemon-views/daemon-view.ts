import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Result } from "../../base/result.ts";
import type { Clock } from "../../model/ports.ts";
import { createSystemClock } from "../../platform/clock.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith, type OutputOption, print } from "../context.ts";
import type { DaemonConnectionOptions } from "../daemon-client.ts";
import { createPaint, type Paint, stripControlCharacters } from "../output/text.ts";

/** Options of the commands that show what the running daemon knows. */
export interface DaemonViewOptions extends DaemonConnectionOptions, OutputOption {
  /** Whether to read it again until the process is asked to stop. Absent means once. */
  readonly watch?: boolean;
}

/** What a command shows. `read` returns what JSON prints, `format` a text that ends with a newline. */
export interface DaemonView<T> {
  read(): Promise<Result<T, string>>;
  format(value: T, paint: Paint): string;
  /** Returns notes for standard error about what the value that was last read lacks. */
  notes?(): readonly string[];
}

/** Interval of `--watch`. */
const WATCH_INTERVAL_MS: DurationMs = 2 * SECOND_MS;
const CLEAR_SCREEN = "\u{1b}[2J\u{1b}[H";

/**
 * Prints a view. With `watch` it is read again every 2 s and printed when it has changed. A terminal is cleared first,
 * and JSON is printed on one line. A failure is then printed like a change, and reading continues.
 */
export async function showView<T>(
  { read, format, notes = () => [] }: DaemonView<T>,
  options: DaemonViewOptions,
  context: CommandContext,
  clock: Pick<Clock, "sleep"> = createSystemClock(),
): Promise<ExitCode> {
  const printNotes = () => {
    for (const note of notes()) context.err.write(`proxywarden: ${stripControlCharacters(note)}\n`);
  };
  if (options.watch !== true) {
    const value = await read();
    if (!value.ok) return failWith(context, value.error);
    print(context, options, value.value, format);
    printNotes();
    return EXIT_OK;
  }
  const paint = createPaint(context.out, context.env);
  const formatChange = (value: T) => (options.output === "json" ? `${JSON.stringify(value)}\n` : format(value, paint));
  const clear = context.out.isTTY === true && options.output === "text" ? CLEAR_SCREEN : "";
  let shown = "";
  while (!context.stop.aborted) {
    const value = await read();
    const text = value.ok ? formatChange(value.value) : `proxywarden: ${value.error}\n`;
    if (text !== shown) {
      (value.ok || clear !== "" ? context.out : context.err).write(`${clear}${text}`);
      if (value.ok) printNotes();
    }
    shown = text;
    await clock.sleep(WATCH_INTERVAL_MS, context.stop);
  }
  return EXIT_OK;
}

/** Returns the query of a URL with the parameters that have a value. */
export function searchOf(parameters: Readonly<Record<string, string | number | null | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined) search.set(name, String(value));
  }
  return search.toString();
}
