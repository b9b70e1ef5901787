import type { Scalar } from "yaml";

/** Blanks, which YAML folds, indents and trims, so that their number differs between a text and its source. */
const BLANK = /[ \t\r\n]/;

/** How one character of a text may be written. */
const TOKENS = {
  QUOTE_DOUBLE: /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[\s\S])|[\s\S]/gy,
  QUOTE_SINGLE: /''|[\s\S]/gy,
  UNQUOTED: /[\s\S]/gy,
} as const;

/**
 * Returns the offset in `source` of the character `index` of the text of `node`, in any YAML style. A blank, or the end
 * of the text, is located after the last character before it that is not a blank, because folding changes the number of
 * blanks.
 */
export function sourceOffset({ type, range, value }: Scalar, source: string, index: number): number {
  const text = String(value);
  const [start, end] = range ?? [0, 0];
  const isBlock = type === "BLOCK_LITERAL" || type === "BLOCK_FOLDED";
  const isQuoted = type === "QUOTE_DOUBLE" || type === "QUOTE_SINGLE";
  // The first line of a block scalar holds its indicator, and maybe a comment.
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
  // Skip the blanks that are the same in the source and in the text.
  for (const blank of /[ \t\r\n]*$/.exec(text.slice(0, index))?.[0] ?? "") {
    if (offset < end && source.charAt(offset) === blank) offset += 1;
    else break;
  }
  return offset;
}

/** Returns the number of characters that are not blanks. */
const nonBlankLength = (text: string): number => text.replace(/[ \t\r\n]/g, "").length;

/** Returns the text of a token. For a one-letter escape only the length matters. */
function unescaped(token: string, type: Scalar["type"]): string {
  if (type === "QUOTE_SINGLE") return token.charAt(0);
  if (type !== "QUOTE_DOUBLE" || !token.startsWith("\\")) return token;
  const letter = token.charAt(1);
  if (/[xu]/i.test(letter) && token.length > 2) return String.fromCodePoint(Number.parseInt(token.slice(2), 16));
  return /[ntr \t\r\n]/.test(letter) ? " " : letter;
}
