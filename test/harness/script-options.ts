import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { errorMessage } from "../../src/base/result.ts";

/** Exit code for wrong usage, as that of the product. */
const WRONG_USAGE = 2;

/**
 * Parses the options of a script, which has no other arguments. The values of `numbers` must be numbers. If an option
 * is invalid, prints a line that lists all options, and ends the process.
 */
export function scriptOptions<const Options extends ParseArgsOptionsConfig>(
  options: Options,
  numbers: readonly (keyof Options & string)[] = [],
  args: readonly string[] = process.argv.slice(2),
) {
  try {
    const { values } = parseArgs({ args: [...args], options });
    const texts: Readonly<Record<string, unknown>> = values;
    for (const name of numbers) {
      if (texts[name] !== undefined && !/^\d+(\.\d+)?$/.test(String(texts[name])))
        throw new Error(`--${name} must be a number, not ${JSON.stringify(texts[name])}`);
    }
    return values;
  } catch (error) {
    const known = Object.entries(options).map(([name, { type }]) => `--${name}${type === "string" ? " VALUE" : ""}`);
    const [problem] = errorMessage(error).split(/\n|\. /);
    console.error(`${problem}; the options are ${known.join(", ")}`);
    process.exit(WRONG_USAGE);
  }
}
