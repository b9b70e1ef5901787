import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import { systemClock } from "../../platform/clock.ts";
import { type CommandContext, CommandFailure, type OutputOption, orFailure, print } from "../context.ts";
import { DaemonClient, type DaemonConnectionOptions } from "../daemon-client.ts";
import { createPaint, type Paint, stripControlCharacters } from "../output/text.ts";

/** Options of the commands that show what the running daemon knows. */
export interface DaemonViewOptions extends DaemonConnectionOptions, OutputOption {
  /** Whether to repeat the command until the process is asked to stop. Absent means false. */
  readonly watch?: boolean;
}

/** What a command shows. */
interface DaemonView {
  /** What `--output json` prints. */
  readonly value: unknown;
  /** Formats the value. The text ends with a newline. */
  format(paint: Paint): string;
  /** Notes for standard error about what the value lacks. Absent if there are none. */
  readonly notes?: readonly string[];
}

/** Returns the command that asks the running daemon for a view and prints it, as {@link showView} does. */
export const viewCommand =
  <Options extends DaemonViewOptions>(read: (options: Options, daemon: DaemonClient) => Promise<DaemonView>) =>
  (options: Options, context: CommandContext): Promise<void> => {
    const daemon = new DaemonClient(options, context);
    return showView(() => read(options, daemon), options, context);
  };

/** Interval of `--watch`. */
const WATCH_INTERVAL_MS: DurationMs = 2 * SECOND_MS;
const CLEAR_SCREEN = "\u{1b}[2J\u{1b}[H";

/**
 * Reads a view and prints it and its notes. With `watch`, reads it every 2 s and prints it again when it has changed. A
 * terminal is cleared first, JSON is printed on one line, and a failure is printed like a change, without ending the
 * command.
 */
export async function showView(
  read: () => Promise<DaemonView>,
  options: DaemonViewOptions,
  context: CommandContext,
  clock: Pick<Clock, "sleep"> = systemClock,
): Promise<void> {
  if (options.watch !== true) {
    const view = await read();
    print(context, options, view.value, (_, paint) => view.format(paint));
    context.err.write(notesText(view));
    return;
  }
  const paint = createPaint(context.out, context.env);
  const formatChange = (view: DaemonView) =>
    options.output === "json" ? `${JSON.stringify(view.value)}\n` : view.format(paint);
  const clear = context.out.isTTY === true && options.output === "text" ? CLEAR_SCREEN : "";
  let shown = { text: "", notes: "" };
  while (!context.stop.aborted) {
    const view = await orFailure(read());
    const isFailure = view instanceof CommandFailure;
    // The read was canceled.
    if (isFailure && context.stop.aborted) return;
    const text = isFailure ? `proxywarden: ${view.message}\n` : formatChange(view);
    const notes = isFailure ? "" : notesText(view);
    const isChanged = text !== shown.text;
    const haveNotesChanged = notes !== shown.notes;
    if (isChanged || (haveNotesChanged && clear !== ""))
      (isFailure && clear === "" ? context.err : context.out).write(`${clear}${text}`);
    if (isChanged || haveNotesChanged) context.err.write(notes);
    shown = { text, notes };
    await clock.sleep(WATCH_INTERVAL_MS, context.stop);
  }
}

/** Formats the notes of a view, a line each. */
const notesText = ({ notes = [] }: DaemonView): string =>
  notes.map((note) => `proxywarden: ${stripControlCharacters(note)}\n`).join("");

/** Returns the query of a URL with the parameters that have a value. */
export function searchOf(parameters: Readonly<Record<string, string | number | null | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  return String(new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))));
}
