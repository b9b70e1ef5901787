/** Returns a count and its noun, such as `1 node` or `2 nodes`. */
export const countNoun = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Returns whether two texts are equal, ignoring case. Null equals only null. */
export const equalsIgnoringCase = (one: string | null, other: string | null): boolean =>
  one?.toLowerCase() === other?.toLowerCase();

/** Enough for an excerpt in a message. */
const EXCERPT_CHARACTERS_MAX = 80;

/** Returns at most `charactersMax` characters of a text, and an ellipsis if it is longer. */
export const truncate = (text: string, charactersMax = EXCERPT_CHARACTERS_MAX): string =>
  text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;

/** Returns a text of several lines on one line, for messages. */
export const onOneLine = (text: string): string => text.trim().replace(/\s*\n\s*/g, " ");

/** Decodes percent-encoding. Invalid text is returned as it is. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the object in a JSON text, or an empty one if there is none. */
export function parseJsonObject(text: string | null): object {
  try {
    const value: unknown = JSON.parse(text ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Matches the advice to use a Node.js flag, which Node.js appends to errors about untrusted certificates. */
export const NODE_CA_ADVICE = /; if the root CA is installed locally, .*$/;
