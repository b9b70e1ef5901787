import { policyTestSchema } from "../../src/config/schema/policy-test.ts";
import { HOLD_REASONS } from "../../src/policy/decision.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";
import { keyRows, keyTable } from "./key-table.ts";

const schema = policyTestSchema(HOLD_REASONS);

const INTRO = `# Policy tests

\`proxywarden policy test FILE…\` runs unit tests of policies. A test defines the state of a fleet over time, and the verdicts, timers,
holds and actions that are expected at certain times. The command runs the daemon's polling and remediation in
virtual time against a simulated service, so an hour takes a fraction of a second. The exit code is 0 if all tests pass, and 1
otherwise; each failure is printed with its line and the expected and actual values.

\`\`\`
config/policies/tests/offline.yaml
  FAIL  a node that stays offline is rebooted, then force-rebooted, then quarantined, one step at a time
        config/policies/tests/offline.yaml:16:9: at 30m, node_1 by reboot-offline: timer: expected firing, got pending
  ok    a node that comes back before \`for\` has passed is left alone
  ok    a reboot that helps ends the episode
  ok    more than a fifth of the fleet offline is a storm, and no node is acted on
3 passed, 1 failed
\`\`\`

A value over time is a single value, or a list of spans such as \`[online for 10m, offline]\`, the last of which lasts until the end. The
fleet follows the file and does not react to actions: to model a reboot that helps, change the status over time. The daemon trusts
the inventory only after two walks, so begin each test with two minutes in which all nodes are healthy. Unless \`mode\` says otherwise, policies are
tested as if they were enforced, even those in \`dry_run\`.`;

/** Returns the reference of policy tests in Markdown. `example` is a whole file. */
export function policyTestReference(example: string): string {
  const { safety, time_intervals, ...keys } = schema.shape;
  const rows = Object.entries(keys).flatMap(([key, value]) => keyRows(key, value));
  const shared =
    "A file may also have the sections `safety` and `time_intervals` of [the configuration](config.md), with the same defaults.";
  return `${[INTRO, "## Keys", shared, keyTable(rows), `## Example\n\n\`\`\`yaml\n${example.trimEnd()}\n\`\`\``].join("\n\n")}\n`;
}

/** JSON Schema of policy tests, for editors. */
export const policyTestJsonSchema = (): JsonSchema => jsonSchemaOf(schema, "proxywarden policy tests");
