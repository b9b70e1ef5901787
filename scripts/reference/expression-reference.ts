import { FIELDS, type Field } from "../../src/policy/cel/fields.ts";
import { FUNCTIONS, UNSUPPORTED_SYNTAX } from "../../src/policy/cel/functions.ts";
import { ARITHMETIC, COMPARISONS } from "../../src/policy/cel/term.ts";
import { tableCell } from "./key-table.ts";

const operators = [...COMPARISONS, ...ARITHMETIC, "&&", "||", "!", "? :", "in"].map((operator) => `\`${operator}\``);

const INTRO = `## Expressions

\`match\`, \`when\`, \`verify.expect\` and \`safety.protected\` are conditions in CEL, the Common Expression Language, over the
fields below. They are checked when the file is loaded: unknown fields, wrong types, and comparisons with a value that the field
never has, such as a misspelled status, are errors. Integers and doubles can be mixed. The operators are
${operators.join(", ")}.
Constants are written like \`"DE"\`, \`0.95\` and \`["DE", "FR"]\`.

A condition is true, false or **unknown**. A field is unknown if it is missing, null, older than the policy's \`max_age\`, or a
usage value whose scale is unknown ([\`service.usage_scale\`](config.md#service)); \`ratio(a, b)\` is unknown if \`b\` is 0. The age of
session counts is the time since the walk that counted them began. A condition that reads an unknown value is unknown, unless the
other operand of \`&&\` or \`||\` determines the result: \`node.status == "online" && node.cpu_usage > 0.9\` is false for an offline
node, whatever its usage. In \`a ? b : c\`, only the branch that is taken matters. \`explain\` shows why a field is unknown: \`missing\` (or null),
\`stale\` (too old), \`undeclared_scale\`, \`in_future\` (a time after its own observation), \`unassigned\` or \`past\` (see
[below](#fields)).

A policy never acts on an unknown condition, and its timer stops counting. A condition that stays unknown for longer than
\`max_age + for\` suspends the episode and frees the node for other policies.`;

const SOURCE_TEXTS: Readonly<Record<Field["source"], string>> = {
  nodes: "node list",
  details: "node detail",
  sessions: "session list",
};

const SESSION_FIELDS = `\`sessions.error\`, \`sessions.timeout\` and \`sessions.failed_ratio\` are missing until the list has shown a failed session. Once a walk
shows that no session of the node failed within the last minute, they are unknown (\`past\`) for two walks, then 0.

If more than 10% of the sessions can't be read or name no node of the fleet, all \`sessions\` fields of all nodes are unknown
(\`unassigned\`), because each of these sessions may be that of any node. Sessions that are being established may name none.`;

/** The section about expressions in docs/policies.md. */
export const expressionReference = (): string =>
  [
    INTRO,
    "### Fields",
    table(
      ["field", "type", "read from", "meaning"],
      FIELDS.map(({ name, type, source, help }) => [code(name), type, SOURCE_TEXTS[source], help]),
    ),
    SESSION_FIELDS,
    "### Functions",
    table(
      ["example", "meaning"],
      FUNCTIONS.map(({ form, help }) => [code(form), help]),
    ),
    "### CEL features that policies do not support",
    table(
      ["feature", "why, and what to write instead"],
      [...UNSUPPORTED_SYNTAX].map(([name, why]) => [code(name), why]),
    ),
  ].join("\n\n");

const code = (text: string): string => `\`${text}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(tableCell).join(" | ")} |`).join("\n");
