import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LineCounter, parseDocument, type Scalar, stringify } from "yaml";
import { sourceOffset } from "../../../src/config/yaml/source-offset.ts";
import { propertyRuns } from "../../harness/run-length.ts";

/** Returns the source from the position of the first character of `mark`. */
function textFollowing(source: string, mark: string, length = mark.length): string {
  const scalar = parseDocument(source).get("when", true) as Scalar;
  const offset = sourceOffset(scalar, source, String(scalar.value).indexOf(mark));
  return source.slice(offset, offset + length);
}

describe("a character of a text is found in its source, if the text is", () => {
  test.each([
    ["plain", 'when: node.status == "x" && WRONG\n'],
    ["plain, over lines", "when: node.status\n    ==  3\n\n  &&   WRONG\n"],
    ["single-quoted", `when: 'a == ''b'' && ''c'' == WRONG'\n`],
    ["single-quoted, over lines", `when: 'a ==\n     ''b''\n\n  && WRONG'\n`],
    ["double-quoted", 'when: "a == \\"b\\" && \\x41\\u0042 == \\U0001F600 && WRONG"\n'],
    ["double-quoted, over lines", 'when: "a\\n\\t ==   \\\n     \\ b\n\n  && WRONG"\n'],
    ["a literal block", "when: |\n  a == 3\n\n    && WRONG\n"],
    ["a literal block with an indent of its own and a comment", "when: |2-  # why\n     a == 3\n   && WRONG\n\n\n"],
    ["a folded block", "when: >-\n  a == 3\n  && b\n\n   && c\n  && WRONG\n"],
    ["behind an anchor and a tag", 'when: &a !!str "x == WRONG"\n'],
    ["with line ends of Windows", "when: >-\r\n  a == 3\r\n  && WRONG\r\n"],
    ["with characters beyond the basic plane", "when: '😀 == 😀 && WRONG'\n"],
  ])("%s", (_, source) => {
    expect(textFollowing(source, "WRONG")).toBe("WRONG");
  });
});

test("an escaped character is where its escape begins", () => {
  expect(textFollowing('when: "a == \\x21 b"\n', "!", 4)).toBe("\\x21");
  expect(textFollowing("when: 'a == ''b'\n", "'b", 3)).toBe("''b");
});

test.each([
  ["when: a == \nfor: 3\n", "for", 4],
  ["when: 'a =='\n", "'", 1],
  ["when: >-\n  a ==\n\n\nfor: 3\n", "\n\n\nfor", 3],
])("the end of a text is where its last character ends: %j", (source, next) => {
  const scalar = parseDocument(source).get("when", true) as Scalar;
  const offset = sourceOffset(scalar, source, String(scalar.value).length);
  expect(source.slice(offset).trimStart().startsWith(next.trimStart())).toBe(true);
  expect(source.slice(0, offset)).toMatch(/==$/);
});

test("an empty text is where it would begin", () => {
  const source = "when: ''\n";
  expect(sourceOffset(parseDocument(source).get("when", true) as Scalar, source, 0)).toBe(7);
});

const words = fc.array(
  fc.oneof(
    fc.constantFrom("node.status", "==", '"offline"', "'", "\\", "#", ": ", "&&", "\n", "  ", "\t", "é", "😀"),
    fc.string(),
  ),
  { minLength: 1, maxLength: 12 },
);
const styles = fc.constantFrom("PLAIN", "QUOTE_SINGLE", "QUOTE_DOUBLE", "BLOCK_LITERAL", "BLOCK_FOLDED");

test("every character of any text is found in its source, in every style", () => {
  fc.assert(
    fc.property(words, styles, fc.integer({ min: 20, max: 90 }), (parts, style, lineWidth) => {
      const text = parts.join(" ");
      const source = stringify({ a: { when: text } }, { defaultStringType: style, lineWidth, minContentWidth: 0 });
      const document = parseDocument(source, { lineCounter: new LineCounter() });
      const scalar = document.getIn(["a", "when"], true) as Scalar;
      const value = String(scalar.value);
      const [start, end] = scalar.range!;
      let last = start;
      for (let index = 0; index < value.length; index += 1) {
        const offset = sourceOffset(scalar, source, index);
        expect(offset >= last && offset <= end).toBe(true);
        last = offset;
        const written = source.charAt(offset);
        if (/[ \t\r\n]/.test(value.charAt(index)) || (scalar.type === "QUOTE_DOUBLE" && written === "\\")) continue;
        expect(written).toBe(value.charAt(index));
      }
    }),
    propertyRuns(500),
  );
});
