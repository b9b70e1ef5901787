import { parser } from "@prometheus-io/lezer-promql";

/** A matcher of a selector. */
export interface Matcher {
  readonly label: string;
  readonly op: string;
  readonly value: string;
}

/** The selectors of an expression and the labels by which it groups or joins. */
export interface ParsedExpression {
  /** The unreadable part of an invalid text, or null if the text is valid PromQL. */
  readonly error: string | null;
  readonly selectors: readonly { readonly name: string; readonly matchers: readonly Matcher[] }[];
  readonly groupings: readonly string[];
}

/** Reads an expression by Prometheus' own grammar. */
export function parsePromql(text: string): ParsedExpression {
  const selectors: { name: string; matchers: Matcher[] }[] = [];
  const groupings: string[] = [];
  let error: string | null = null;
  parser.parse(text).iterate({
    enter({ node, type, from, to }) {
      const output = text.slice(from, to);
      if (type.isError) error ??= `${text.slice(0, from)} ⚠ ${text.slice(from)}`;
      if (type.name === "VectorSelector") {
        const name = node.getChild("Identifier");
        selectors.push({ name: name === null ? "" : text.slice(name.from, name.to), matchers: [] });
      }
      if (type.name === "UnquotedLabelMatcher") {
        const [label, op, value] = ["LabelName", "MatchOp", "StringLiteral"].map((name) => node.getChild(name));
        const textOf = (part: typeof label) => text.slice(part?.from, part?.to);
        selectors.at(-1)!.matchers.push({ label: textOf(label), op: textOf(op), value: textOf(value).slice(1, -1) });
      }
      if (type.name === "LabelName" && node.parent?.name === "GroupingLabels") groupings.push(output);
    },
  });
  return { error, selectors, groupings };
}
