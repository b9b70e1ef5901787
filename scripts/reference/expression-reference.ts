import { FIELDS, type Field } from "../../src/policy/cel/fields.ts";
import { FUNCTIONS, UNSUPPORTED_SYNTAX } from "../../src/policy/cel/functions.ts";
import { ARITHMETIC, COMPARISONS } from "../../src/policy/cel/term.ts";
import type { UnknownCause } from "../../src/policy/evaluation.ts";
import { tableCell } from "./key-table.ts";

const operators = [...COMPARISONS, ...ARITHMETIC, "&&", "||", "!", "? :", "in"].map((operator) => `\`${operator}\``);

const INTRO = `## Expressions

\`match\`, \`when\`, \`verify.expect\` and \`safety.protected\` are conditions in CEL, the Common Expression Language, over the
fields below. They are checked when the file is loaded: unknown fields, wrong types, and comparisons with a value that the field
never has, such as a misspelled status, are errors. Integers and doubles can be mixed, except among the elements of a list and in the two
branches of \`? :\`. The operators are
${operators.join(", ")}.
Constants are written like \`"DE"\`, \`0.95\` and \`["DE", "FR"]\`.

A condition is true, false or **unknown**. A condition that reads an [unknown field](#unknown-fields) is unknown, unless the other
operand of \`&&\` or \`||\` determines the result: \`node.status == "online" && node.cpu_usage > 0.9\` is false for an offline node,
whatever its usage. In \`a ? b : c\`, only the branch that is taken matters.

A policy never acts on an unknown condition, and the time for which the condition is unknown does not count toward \`for\`. A condition
that stays unknown for longer than \`max_age + for\` suspends the episode and frees the node for other policies, except while a step is in
progress or the daemon's quarantine is in effect.`;

const SOURCE_TEXTS: Readonly<Record<Field["source"], string>> = {
  nodes: "node list",
  details: "node detail",
  sessions: "session list",
};

const UNKNOWN_INTRO = `\`explain\` names each field that makes a condition unknown, with one of these causes:`;

const UNKNOWN_CAUSES: Readonly<Record<UnknownCause["why"], string>> = {
  missing:
    "The service did not report the field, or its value can't be determined: see the table above. A country or region that it no longer reports keeps its last value. All session counts are missing after a walk of the session list that missed too many sessions, and while sessions of the node may be [counted under `other`](metrics.md#caps-on-label-values-from-the-service). `sessions.error`, `sessions.timeout` and `sessions.failed_ratio` are missing until the list has included a failed session, and while the status of any session of the node is unknown.",
  stale:
    "It is older than the policy's `max_age`. The age of session counts is the time since the walk that counted them began.",
  undeclared_scale: "[`service.usage_scale`](config.md#service) is not set, or a value contradicted it.",
  in_future: "The timestamp is more than a minute later than its observation, so a clock is wrong.",
  unassigned:
    "More than 10% of the sessions, and at least two, can't be read or name no node of the fleet, and any of them may be this node's. Connecting sessions without a node do not count, because they may not have one yet.",
  past: "The list still has failed sessions of the node, but none that failed in the minute before the last walk. From the third such walk in a row, the value is 0.",
  error: "The whole expression has no value: `b` in `ratio(a, b)` is 0, or a number is too large.",
};

/** The section about expressions in docs/policies.md. */
export const expressionReference = (): string =>
  [
    INTRO,
    "### Fields",
    table(
      ["field", "type", "read from", "meaning"],
      FIELDS.map(({ name, type, source, help }) => [code(name), type, SOURCE_TEXTS[source], help]),
    ),
    "### Unknown fields",
    UNKNOWN_INTRO,
    table(
      ["cause", "meaning"],
      Object.entries(UNKNOWN_CAUSES).map(([why, meaning]) => [code(why), meaning]),
    ),
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
