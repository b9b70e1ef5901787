import { type ExplainOptions, runExplain } from "../../src/cli/explain.ts";
import { captureOutput } from "./terminal.ts";

/** Runs `explain`. By default no daemon is reachable. */
export const printExplanation = (
  node: string,
  options: Partial<ExplainOptions>,
  env: Readonly<Record<string, string>> = {},
) =>
  captureOutput(
    (context) => runExplain({ url: "http://127.0.0.1:1", output: "text", ...options }, context, [node]),
    env,
  );

/** Returns the lines of a text from the first with this beginning to the next empty line. */
export function paragraph(text: string, beginning: string): readonly string[] {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.startsWith(beginning));
  if (first < 0) throw new Error(`no line begins with ${beginning}:\n${text}`);
  const length = lines.slice(first).indexOf("");
  return lines.slice(first, length < 0 ? undefined : first + length);
}
