import { fail, ok, type Result } from "../base/result.ts";
import type { TransportResponse } from "../model/ports.ts";
import { excerpt } from "./errors.ts";

/** Accepted encoding of bodies. Without it a walk of a million sessions would transfer hundreds of megabytes. */
export const ACCEPTED_ENCODING = "gzip";

const utf8 = new TextDecoder("utf-8");

/** Decodes a body as UTF-8; invalid bytes become replacement characters. */
export const bodyText = (body: Uint8Array): string => utf8.decode(body);

/** Parses a body as JSON. Returns undefined if it is invalid or has more than `valuesMax` values. */
export function parseJson(body: Uint8Array, valuesMax = VALUES_MAX): unknown {
  if (hasTooManyValues(body, valuesMax)) return undefined;
  try {
    return JSON.parse(bodyText(body)) as unknown;
  } catch {
    return undefined;
  }
}

/** A JSON object whose fields are not checked. */
export type RawRecord = Readonly<Record<string, unknown>>;

/** Returns a value as a record, or an empty record if it is not an object. */
export const asRawRecord = (json: unknown): RawRecord =>
  (typeof json === "object" && json !== null ? json : {}) as RawRecord;

/** Number of characters quoted from the end of truncated JSON. */
const TAIL_CHARACTERS = 40;

/**
 * Maximum number of values, lists and objects in a JSON text. The largest body of ordinary records has half as many and
 * is parsed in a fraction of a second; a body of the same size that consists of `{},` would block the event loop for
 * seconds.
 */
const VALUES_MAX = 1_000_000;

/** Parses the body of a response as JSON. The error says what is wrong with it, and where it is cut off. */
export function readJson(response: TransportResponse): Result<unknown, string> {
  if (hasTooManyValues(response.body, VALUES_MAX)) return fail(`the JSON has more than ${VALUES_MAX} values`);
  const text = bodyText(response.body);
  try {
    return ok(JSON.parse(text) as unknown);
  } catch (error) {
    return fail(encodingProblem(response) ?? jsonProblem(response, text, (error as SyntaxError).message));
  }
}

/**
 * Returns whether there may be more than `valuesMax` values: each but the first follows a comma or an opening bracket.
 */
function hasTooManyValues(body: Uint8Array, valuesMax: number): boolean {
  if (body.length <= valuesMax) return false;
  let values = 0;
  for (let index = 0; index < body.length && values <= valuesMax; index++) {
    const byte = body[index];
    if (byte === COMMA || byte === OPENING_BRACKET || byte === OPENING_BRACE) values++;
  }
  return values > valuesMax;
}

const [COMMA, OPENING_BRACKET, OPENING_BRACE] = [0x2c, 0x5b, 0x7b];

function jsonProblem({ headers }: TransportResponse, text: string, found: string): string {
  if (text.trim() === "") return "expected JSON, got an empty body";
  if (!/^\s*[[{]/.test(text)) {
    return `expected JSON, got ${headers["content-type"] ?? "no content type"} beginning with ${excerpt(text)}`;
  }
  const position = /at position (\d+)/.exec(found);
  const isCutOff = position === null ? found.startsWith("Unexpected end") : Number(position[1]) >= text.length;
  if (!isCutOff) return `the JSON is broken: ${found}`;
  return `the JSON is cut off after ${text.length} characters; it ends with ${excerpt(text.slice(-TAIL_CHARACTERS))}`;
}

/** Returns why the encoding of a body makes it unreadable, or null if it does not. */
function encodingProblem({ headers, body }: TransportResponse): string | null {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === ACCEPTED_ENCODING || encoding === "x-gzip")
    return "the body is not gzip although its Content-Encoding says so";
  if (encoding !== "" && encoding !== "identity") {
    return `the body is compressed with ${JSON.stringify(encoding)}, which was not requested`;
  }
  if (body[0] === 0x1f && body[1] === 0x8b) return "the body is compressed with gzip, but has no Content-Encoding";
  return null;
}
