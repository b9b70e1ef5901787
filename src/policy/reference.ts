import { FIELDS, type Field } from "./field.ts";
import { FUNCTIONS, REFUSALS } from "./function.ts";
import { ARITHMETIC, COMPARISONS } from "./term.ts";

const operators = [...COMPARISONS, ...ARITHMETIC, "&&", "||", "!", "? :", "in"].map((operator) => `\`${operator}\``);

const INTRO = `## Expressions

\`match\`, \`when\`, \`verify.expect\` and \`safety.protected\` are conditions in CEL, the Common Expression Language, over the
fields below. They are checked when the file is loaded: an unknown field, a wrong type, and a condition that would hold
always or never are errors. Numbers of any kind compare with each other. There are the operators
${operators.join(", ")},
and constants such as \`"DE"\`, \`0.95\` and \`["DE", "FR"]\`.

A condition is true, false or **unknown**. It is unknown if any field that it names is missing, null, older than the
policy's \`max_age\`, or a usage whose scale is not known, whatever the rest of the condition says. Unknown freezes the
timers, and never acts.`;

const sources: Readonly<Record<Field["source"], string>> = {
  nodes: "node list",
  details: "detail of the node",
  sessions: "session list",
};

/** The part of docs/policies.md that says what expressions may name. */
export const expressionReference = (): string =>
  [
    INTRO,
    "### Fields",
    table(
      ["field", "type", "read from", "meaning"],
      FIELDS.map(({ name, type, source, help }) => [code(name), type, sources[source], help]),
    ),
    "### Functions",
    table(
      ["written", "meaning"],
      FUNCTIONS.map(({ form, help }) => [code(form), help]),
    ),
    "### What CEL has and policies refuse",
    table(
      ["written", "why, and what to write instead"],
      [...REFUSALS].map(([name, why]) => [code(name), why]),
    ),
  ].join("\n\n");

const code = (text: string): string => `\`${text}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
