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
