import { policyTestSchema } from "../../src/config/schema/policy-test.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";
import { keyRows, keyTable } from "./key-table.ts";

const INTRO = `# Tests of policies

\`proxywarden test FILE…\` runs tests of policies: how a fleet looks over time goes in, and which verdicts, timers, holds and
actions are expected when. It is the whole daemon that runs, on virtual time, over a service that shows what the file
says: an hour takes a fraction of a second, and what passes here is what would happen. It ends with 0 where all
tests pass, and with 1 where one does not, each miss with its line, what was expected, and what came instead.

\`\`\`
config/policies/tests/offline.yaml
  FAIL  a node that stays offline is rebooted
        config/policies/tests/offline.yaml:14:9: at 30m, node_1 by reboot-offline: timer: expected firing, got pending
0 passed, 1 failed
\`\`\`

A value over time is a list of spans, such as \`[online for 10m, offline]\`: the last one stays, and a single value may stand
alone. The fleet does what is written, whatever is done to it: a reboot that helps is a status that changes. The daemon
believes what it sees after two walks, so a test begins with two quiet minutes. Where no mode is said, all is judged as if
it were enforced: what a policy in \`dry_run\` would do is what one wants to know.`;

/** The reference of files of policy tests, in Markdown. `example` is a whole file. */
export function policyTestReference(example: string): string {
  const { safety, time_intervals, ...keys } = policyTestSchema.shape;
  const rows = Object.entries(keys).flatMap(([key, schema]) => keyRows(key, schema));
  const shared =
    "`safety` and `time_intervals` may stand in such a file as well: as in [the configuration](config.md), with the same defaults.";
  return `${[INTRO, "## Keys", shared, keyTable(rows), `## Example\n\n\`\`\`yaml\n${example.trimEnd()}\n\`\`\``].join("\n\n")}\n`;
}

/** JSON Schema of files of policy tests, for editors. */
export const policyTestJsonSchema = (): JsonSchema => jsonSchemaOf(policyTestSchema, "proxywarden policy tests");
