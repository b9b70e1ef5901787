import { fail, ok, type Result } from "../base/result.ts";
import type { ServiceResponse } from "../model/ports.ts";
import { encodingProblem } from "./compression.ts";
import { excerpt } from "./errors.ts";

const utf8 = new TextDecoder("utf-8");

/** The text of a body; what is no UTF-8 becomes replacement characters. */
export const bodyText = (body: Uint8Array): string => utf8.decode(body);

/** The value of a JSON text; undefined where it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A field of a JSON object; undefined where there is neither. */
export const fieldOf = (json: unknown, field: string): unknown =>
  typeof json === "object" && json !== null ? (json as Readonly<Record<string, unknown>>)[field] : undefined;

/** The end of a text that is quoted where it is cut off, characters. */
const TAIL_CHARACTERS = 40;

/** The JSON of a response's body. The error says what the body is instead, and where it breaks off. */
export function readJson(response: ServiceResponse): Result<unknown, string> {
  const text = bodyText(response.body);
  try {
    return ok(JSON.parse(text) as unknown);
  } catch (error) {
    return fail(encodingProblem(response) ?? jsonProblem(response, text, (error as SyntaxError).message));
  }
}

function jsonProblem({ headers }: ServiceResponse, text: string, found: string): string {
  if (text.trim() === "") return "expected JSON, got an empty body";
  if (!/^\s*[[{]/.test(text)) {
    return `expected JSON, got ${headers["content-type"] ?? "no content type"} beginning with ${excerpt(text)}`;
  }
  const position = /at position (\d+)/.exec(found);
  const isCutOff = position === null ? found.startsWith("Unexpected end") : Number(position[1]) >= text.length;
  if (!isCutOff) return `the JSON is broken: ${found}`;
  return `the JSON is cut off after ${text.length} characters; it ends with ${excerpt(text.slice(-TAIL_CHARACTERS))}`;
}
