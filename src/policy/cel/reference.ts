import { FIELDS, type Field } from "./fields.ts";
import { FUNCTIONS, UNSUPPORTED_SYNTAX } from "./functions.ts";
import { ARITHMETIC, COMPARISONS } from "./term.ts";

const operators = [...COMPARISONS, ...ARITHMETIC, "&&", "||", "!", "? :", "in"].map((operator) => `\`${operator}\``);

const INTRO = `## Expressions

\`match\`, \`when\`, \`verify.expect\` and \`safety.protected\` are conditions in CEL, the Common Expression Language, over the
fields below. They are checked when the file is loaded: an unknown field, a wrong type, and a condition that would hold
always or never are errors. Numbers of any kind compare with each other. There are the operators
${operators.join(", ")},
and constants such as \`"DE"\`, \`0.95\` and \`["DE", "FR"]\`.

A condition is true, false or **unknown**. A field is unknown if it is missing, null, older than the policy's \`max_age\`, or a
usage whose scale is not known; \`ratio(a, b)\` is unknown where \`b\` is 0. A condition that reads something unknown is unknown,
unless the other operand of \`&&\` or \`||\` settles it: \`node.status == "online" && node.cpu_usage > 0.9\` is false for a node that
is offline, whatever its usage. Of \`? :\` only the branch that is taken counts.

A policy never acts on an unknown condition, and its timer stands still. A condition that stays unknown for longer than
\`max_age + for\` suspends the episode and frees the node for other policies.`;

const SOURCE_TEXTS: Readonly<Record<Field["source"], string>> = {
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
      FIELDS.map(({ name, type, source, help }) => [code(name), type, SOURCE_TEXTS[source], help]),
    ),
    "### Functions",
    table(
      ["written", "meaning"],
      FUNCTIONS.map(({ form, help }) => [code(form), help]),
    ),
    "### What CEL has and policies refuse",
    table(
      ["written", "why, and what to write instead"],
      [...UNSUPPORTED_SYNTAX].map(([name, why]) => [code(name), why]),
    ),
  ].join("\n\n");

const code = (text: string): string => `\`${text}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
