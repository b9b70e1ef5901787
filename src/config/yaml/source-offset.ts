import type { Scalar } from "yaml";

/** What YAML folds, indents and trims: its amount differs between a text and its source, all other characters don't. */
const BLANK = /[ \t\r\n]/;

/** What one character of a text, or two beyond the basic plane, are written as. */
const TOKENS = {
  QUOTE_DOUBLE: /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[\s\S])|[\s\S]/gy,
  QUOTE_SINGLE: /''|[\s\S]/gy,
  UNQUOTED: /[\s\S]/gy,
} as const;

/**
 * Offset in `source` of the character `index` of a text that stands there as `node`, in whatever style. Blanks and the
 * text's end are where the character before them ends: how many there are is what folding changes.
 */
export function sourceOffset({ type, range, value }: Scalar, source: string, index: number): number {
  const text = String(value);
  const [start, end] = range ?? [0, 0];
  const isBlock = type === "BLOCK_LITERAL" || type === "BLOCK_FOLDED";
  const isQuoted = type === "QUOTE_DOUBLE" || type === "QUOTE_SINGLE";
  // The first line of a block scalar is its indicator, and may be a comment as well.
  const bodyStart = isBlock ? source.indexOf("\n", start) + 1 : start + (isQuoted ? 1 : 0);
  const body = source.slice(bodyStart, isQuoted ? end - 1 : end);
  const pattern = isQuoted ? TOKENS[type] : TOKENS.UNQUOTED;
  const isNonBlank = index < text.length && !BLANK.test(text.charAt(index));
  const before = nonBlankLength(text.slice(0, index));
  let seen = 0;
  let offset = bodyStart;
  for (const { 0: token, index: at } of body.matchAll(pattern)) {
    if (seen === before && !isNonBlank) break;
    const nonBlank = nonBlankLength(unescaped(token, type));
    if (seen + nonBlank > before) return bodyStart + at;
    seen += nonBlank;
    if (nonBlank > 0) offset = bodyStart + at + token.length;
  }
  // Blanks that stand in the source as they do in the text are counted.
  for (const blank of /[ \t\r\n]*$/.exec(text.slice(0, index))?.[0] ?? "") {
    if (offset < end && source.charAt(offset) === blank) offset += 1;
    else break;
  }
  return offset;
}

/** Characters that are no blanks. */
const nonBlankLength = (text: string): number => text.replace(/[ \t\r\n]/g, "").length;

/** The text that a token stands for, as far as it counts: which character an escape of one letter is does not. */
function unescaped(token: string, type: Scalar["type"]): string {
  if (type === "QUOTE_SINGLE") return token.charAt(0);
  if (type !== "QUOTE_DOUBLE" || !token.startsWith("\\")) return token;
  const letter = token.charAt(1);
  if (/[xu]/i.test(letter) && token.length > 2) return String.fromCodePoint(Number.parseInt(token.slice(2), 16));
  return /[ntr \t\r\n]/.test(letter) ? " " : letter;
}
