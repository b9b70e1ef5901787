import { InvalidArgumentError, Option } from "commander";
import { type DurationMs, parseDuration, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { checkText } from "../../web/api/query.ts";
import type { CommandContext } from "../context.ts";
import { TOKEN_VARIABLE } from "../daemon-client.ts";

/** A row of a table of commands. */
export interface CommandRow {
  /** Name and arguments, as commander writes them. */
  readonly usage: string;
  readonly description: string;
  /** What follows `proxywarden` in the example of the help. */
  readonly example: string;
  readonly options?: readonly Option[];
  /** `options` has the type that the options of the row parse to. Rejects if the command fails. */
  run(options: never, context: CommandContext, args: readonly string[]): Promise<void>;
}

/**
 * Loads the function of a command when it runs, so that a command does not load the code of the others: a health check
 * runs often, and the daemon needs no simulator.
 */
export const onDemand =
  <Args extends unknown[]>(load: () => Promise<(...args: Args) => Promise<void>>) =>
  async (...args: Args): Promise<void> =>
    (await load())(...args);

/** URL of a daemon with the default configuration. */
const DEFAULT_URL = "http://127.0.0.1:9713";

/**
 * Creates an option. Without a parser, its value is the text, or true if it takes none. The error of a parser, which may
 * begin with "must", becomes a sentence of the usage error.
 */
export function option<T>(
  flags: string,
  description: string,
  parse?: (text: string) => Result<T, string>,
  defaultValue?: T,
): Option {
  const created = new Option(flags, description).default(defaultValue);
  return parse === undefined ? created : created.argParser((text) => parsedOrRejected(parse(text)));
}

function parsedOrRejected<T>(read: Result<T, string>): T {
  if (read.ok) return read.value;
  const sentence = read.error.replace(/^must /, "it must ");
  throw new InvalidArgumentError(`${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`);
}

/** Parses a text to look for. The daemon accepts the same texts. */
export function parseSearchText(text: string): Result<string, string> {
  const problem = checkText(text);
  return problem === null ? ok(text) : fail(problem);
}

/** Creates a parser of whole numbers from `min` to `max`; the error names both. */
export const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  const fits = text.trim() !== "" && Number.isInteger(value) && value >= min && value <= max;
  return fits ? ok(value) : fail(`it must be a whole number from ${min} to ${max}`);
};

/** Parses the address to listen on. An empty text would mean all addresses. */
export const parseHost = (text: string): Result<string, string> =>
  text === "" ? fail("it must be an address or host name, such as 127.0.0.1") : ok(text);

/** Parses the speed of a simulation, as a multiple of real time. */
export function parseSpeed(text: string): Result<number, string> {
  const value = Number(text);
  return value >= 0.1 && value <= 1_000 ? ok(value) : fail("it must be a number from 0.1 to 1000");
}

/** Parses the time between two points of a history, in whole seconds; returns milliseconds. */
export function parseStep(text: string): Result<DurationMs, string> {
  const step = parseDuration(text);
  const isWhole = !step.ok || (step.value >= SECOND_MS && step.value % SECOND_MS === 0);
  return isWhole ? step : fail("it must be a duration of whole seconds, such as 30s or 5m");
}

/** Creates a parser of the URL of a server. The error shows the example. */
export const serverUrl =
  (example: string) =>
  (text: string): Result<string, string> => {
    const isUrl = ["http:", "https:"].includes(URL.parse(text)?.protocol ?? "");
    return isUrl ? ok(text) : fail(`it must be an http or https URL, such as ${example}`);
  };

/** The option `--config` of commands that need a configuration. */
export const CONFIG = option("--config <file>", "configuration file").default("/etc/proxywarden/proxywarden.yaml");

/** The option `--output`. */
export const OUTPUT = option("--output <format>", "output format").choices(["text", "json"]).default("text");

/** The options of commands that ask the running daemon. */
export const DAEMON: readonly Option[] = [
  option("--url <url>", "URL of the daemon", serverUrl(DEFAULT_URL), DEFAULT_URL),
  option(
    "--http-config-file <file>",
    "HTTP client config file with tls_config, basic_auth and authorization, in Prometheus format",
  ),
];

/** The options of commands that may need an operator token, and `--output`. */
export const OPERATOR: readonly Option[] = [
  ...DAEMON,
  option("--token-file <file>", `file with your operator token; default: the token in ${TOKEN_VARIABLE}`),
  OUTPUT,
];
