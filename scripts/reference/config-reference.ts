import type { z } from "zod";
import { configSchema } from "../../src/config/schema/config.ts";
import { alternatives, innermost, sectionKeys } from "../../src/config/schema/introspection.ts";
import { policyFileSchema } from "../../src/config/schema/policy.ts";
import { scenarioSchema } from "../../src/config/schema/scenario.ts";
import { sharedKeys } from "../../src/config/schema/scenario-faults.ts";
import { webSchema } from "../../src/config/schema/web-file.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";
import { itemsMax, type KeyRow, keyRows, keyTable, listItem, meaningOf, tableCell } from "./key-table.ts";

const FILE_FORMAT = `## File format

Durations use Prometheus' format: \`30s\`, \`5m\`, \`1h30m\`, \`7d\`. Shares are percentages: \`20%\`.

\`\${NAME}\` in a value is replaced with the value of the environment variable \`NAME\`. An unset variable is an error. Write a literal \`\${\` as \`$\${\`.
Inside \`{ }\` or \`[ ]\`, quote a value that contains a variable. Variables are replaced after the YAML is parsed, so they
can't add keys. A variable may hold a number where a number is expected.

An unknown key is an error. All errors in a file are reported together, up to 50, each with its line and column:

\`\`\`
config/proxywarden.yaml:23:19: collect.nodes.every: found "1 minute"; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d
config/proxywarden.yaml:29:1: exports: unknown key; did you mean "export"?
\`\`\`

Editors with yaml-language-server complete and check the file if its first line names \`proxywarden.schema.json\`, as in the example.`;

const CONFIG_INTRO = `# Configuration

The configuration is one YAML file, which you pass to commands with \`--config\`. Paths in it are relative to its folder. The
[example](#example) below the reference has the main keys with their defaults. \`check\` lists every error in the file.
\`plan\`, \`explain\`, \`policy diff\` and \`policy backtest\` need only the secrets of the servers that they connect to.`;

const WEB_INTRO = `## The web configuration file

\`web.web_config_file\` names this file. It has the format of Prometheus' exporter-toolkit, so the daemon, Prometheus and
its exporters can share one file. Paths in it are relative to its folder, and \`check\` validates it together with the configuration.

The file is interpreted as it would be by a Go program: a key without a value is absent, durations have Go's format (\`1.5s\`, \`1h30m\`,
\`100ms\`; no days), and an empty file is valid. Differences from the toolkit:

- HTTP/2 is not supported. \`http2: true\` is accepted, and clients use HTTP/1.1.
- These are errors even where the toolkit accepts them: both an inline value and a file for the same setting,
  a \`client_allowed_sans\` that is empty or not combined with a required certificate, a \`max_version\` older than
  \`min_version\`, authorities that are not certificates, bcrypt costs over 18, and intervals without a unit.
- \`\${NAME}\` is replaced with the value of the environment variable \`NAME\`.

The file, the certificates and the keys are read again when they change, and apply to new connections and requests. If one of
them is invalid, the previous settings stay active, the log says what is wrong, and
\`proxywarden_web_config_last_reload_successful\` is 0. To turn TLS on or off, restart the daemon. Removing all users turns basic auth
off only when the configuration is reloaded, so a half-written file can't remove the protection.`;

const POLICIES_INTRO = `# Policies

A policy defines which nodes are unhealthy, and the steps to remediate them. Policies are in YAML files, which are listed under \`policies\`
in the configuration. The configuration's section [\`safety\`](config.md#safety) limits all policies together. \`check\` validates the files and
prints the maximum number of nodes that the policies could act on in an hour.

A policy *fires* for a node when its condition \`when\` has held for the duration \`for\`. This opens an *episode*, in which the steps are
taken one after the other until the node has recovered or no step is left. Policies are evaluated in the order of their file paths, and
within a file from top to bottom. If several policies match a node, the first one that fires keeps it until its episode ends or is
suspended. A dry run does not prevent policies in other modes from acting on the node. [remediation.md](remediation.md#episodes) describes
episodes, and [policy-tests.md](policy-tests.md) how to test a policy before it acts.`;

const POLICIES_FORMAT = `## File format

A file has one key, \`policies\`: a list of at most ${itemsMax(policyFileSchema.shape.policies)} policies.
Durations and environment variables are written as in [the configuration](config.md#file-format), and errors are reported in the same way:

\`\`\`
config/policies/offline.yaml:11:11: policies[0].when: found "node.stauts == \\"offline\\" && now - node.last_seen > duration(…"; must be a CEL expression: unknown field node.stauts; did you mean node.status?
config/policies/offline.yaml:18:37: policies[0].steps[3].receiver: found "oncal"; must be the name of a receiver: oncall; did you mean "oncall"?
\`\`\`

Editors with yaml-language-server complete and check a policy file whose first line is
\`# yaml-language-server: $schema=../policies.schema.json\`.`;

const STEPS_INTRO = `\`steps\` is a list. Each step has an \`action\` and these keys:`;

const STEPS_RULES = `A step ends after \`verify.within\`, or as soon as \`verify.expect\` is true, unless its result is not clear yet. If it is not clear
after \`verify.within\`, the step continues for at most as long again or 10 minutes (6 hours if the node is not observed), whichever is
longer. If \`when\` is false at the end, the episode closes as healed after \`clear_for\`, which starts after the quarantine if there is one.
The next step is taken if \`when\` is still true at the end, if the node becomes unhealthy again before the episode closes, or if a rebooted
node has not come back online. Apart from regular polling, a node is read again no earlier than 15 seconds after an action, and \`check\`
warns if \`verify.within\` is shorter. If \`verify.expect\` held before the action and has held ever since, it says nothing about the action,
and ends the step only once \`when\` is false. A step that the service rejects, or whose result stays unclear, ends the episode. An action
whose response is unclear is verified by observation; no action is sent twice.`;

const SCENARIO_INTRO = `# Simulator scenarios

\`simulate --scenario FILE\` serves the management API of a simulated network, which a YAML file describes. Keys that are not in the file
have the defaults below. To try it in a checkout, run \`npm start -- simulate --scenario config/scenarios/rough-day.yaml\`, and
\`curl -H "Authorization: Bearer rough-day" http://127.0.0.1:9714/v1/nodes\` in another terminal.

Durations, percentages and environment variables are written as in [the configuration](config.md#file-format), and errors are reported in
the same way:

\`\`\`
rough-day.yaml:9:14: faults[2].for: found 90; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d
rough-day.yaml:12:11: faults[3].kind: found "hangs"; must be one of status, gateway_limit, limit_headers, wrong_date, …; did you mean "hang"?
\`\`\``;

/** Returns the reference of the configuration in Markdown. The examples are the texts of whole files. */
export function configReference(example: string, webExample: string): string {
  const sections = Object.entries(configSchema.shape).map(sectionReference);
  const web = keyTable(Object.entries(webSchema.shape).flatMap(([key, schema]) => keyRows(key, schema)));
  return joinSections([
    CONFIG_INTRO,
    FILE_FORMAT,
    ...sections,
    titledYaml("Example", example),
    WEB_INTRO,
    web,
    yamlBlock(webExample),
  ]);
}

function sectionReference([name, schema]: [string, z.core.$ZodType]): string {
  const [own, ...keys] = keyRows(name, schema);
  // The row of a section without keys has its meaning.
  if (keys.length === 0) return `## ${name}\n\n${keyTable([own!])}`;
  return `## ${name}\n\n${meaningOf(schema)}\n\n${keyTable(keys)}`;
}

/** JSON Schema of the configuration file, for editors. */
export const configJsonSchema = (): JsonSchema => jsonSchemaOf(configSchema, "proxywarden configuration");

/** JSON Schema of web configuration files, for editors. */
export const webJsonSchema = (): JsonSchema => jsonSchemaOf(webSchema, "proxywarden web configuration");

/** Returns the reference of policy files in Markdown. `expressions` is that of expressions, `example` a whole file. */
export function policyReference(expressions: string, example: string): string {
  const policyKeys = sectionKeys(listItem(policyFileSchema.shape.policies)!)!;
  const keys = keyTable(Object.entries(policyKeys).flatMap(([key, schema]) => keyRows(key, schema)));
  const steps = alternativesTable("action", listItem(policyKeys.steps!)!);
  return joinSections([
    POLICIES_INTRO,
    titledYaml("Example", example),
    POLICIES_FORMAT,
    `## Keys of a policy\n\n${keys}`,
    `## steps\n\n${STEPS_INTRO}\n\n${steps}\n\n${STEPS_RULES}`,
    expressions,
    `## windows\n\n${WINDOWS_RULES}\n\n${yamlBlock(NIGHT_EXAMPLE)}`,
  ]);
}

const WINDOWS_RULES = `A policy with \`windows\` acts only within these time intervals. They are defined under \`time_intervals\` in
[the configuration](config.md), with Alertmanager's format and meaning: weekdays, days of the month, months and years are matched
against the current date in the interval's location. A time range can't span midnight, so a night needs two ranges: one that ends
at \`24:00\` and one that begins at \`00:00\`.

The early hours of a night belong to the next day: with \`weekdays: [friday]\`, the early range is open on Friday morning. To cover only
certain nights, define two intervals, and name the following days in the one for the early hours. \`check\` warns
about an interval that ends at midnight and is not continued, and about one whose days are all past.`;

const NIGHT_EXAMPLE = `time_intervals:
  - name: every-night
    times: [{ start_time: "23:00", end_time: "24:00" }, { start_time: "00:00", end_time: "05:00" }]
    location: Europe/Paris
  - name: weekend-nights # from Friday 23:00 to Saturday 05:00, and from Saturday 23:00 to Sunday 05:00
    time_intervals:
      - { weekdays: [friday, saturday], times: [{ start_time: "23:00", end_time: "24:00" }], location: Europe/Paris }
      - { weekdays: [saturday, sunday], times: [{ start_time: "00:00", end_time: "05:00" }], location: Europe/Paris }`;

/** JSON Schema of policy files, for editors. */
export const policyJsonSchema = (): JsonSchema => jsonSchemaOf(policyFileSchema, "proxywarden policies");

/** Returns the reference of scenario files in Markdown. */
export function scenarioReference(example: string): string {
  const { faults, ...keys } = scenarioSchema.shape;
  const isSection = ([, schema]: [string, z.core.$ZodType]) => sectionKeys(schema) !== null;
  const single = Object.entries(keys).filter((entry) => !isSection(entry));
  const sections = Object.entries(keys).filter(isSection).map(sectionReference);
  const top = keyTable(single.flatMap(([name, schema]) => keyRows(name, schema)));
  return joinSections([
    SCENARIO_INTRO,
    top,
    ...sections,
    faultReference(listItem(faults)!),
    titledYaml("Example", example),
  ]);
}

/** JSON Schema of scenario files, for editors. */
export const scenarioJsonSchema = (): JsonSchema => jsonSchemaOf(scenarioSchema, "proxywarden scenario");

/** Returns the keys of all faults, and the kinds of faults with their own keys. */
function faultReference(fault: z.core.$ZodType): string {
  const shared = Object.entries(sharedKeys).flatMap(([key, schema]) => keyRows(`faults[].${key}`, schema));
  return [
    "## faults",
    "A list of faults. Every fault has a `kind` and these keys:",
    keyTable(shared),
    alternativesTable("kind", fault, Object.keys(sharedKeys)),
  ].join("\n\n");
}

/**
 * Returns a table of the alternatives of a choice, with their keys except `commonKeys`. The key `wordKey` tells them
 * apart.
 */
function alternativesTable(wordKey: string, choice: z.core.$ZodType, commonKeys: readonly string[] = []): string {
  const rows = (alternatives(choice) ?? []).map((option) => {
    const { [wordKey]: word, ...keys } = sectionKeys(option)!;
    const { def } = innermost(word!)._zod;
    const own = Object.entries(keys).filter(([key]) => !commonKeys.includes(key));
    const lines = own.flatMap(([key, schema]) => keyRows(key, schema)).map(keyLine);
    const name = def.type === "literal" ? def.values[0] : "";
    return `| \`${name}\` | ${tableCell(meaningOf(option))} | ${tableCell(lines.join("<br>"))} |`;
  });
  return [`| ${wordKey} | what it does | keys |`, "| --- | --- | --- |", ...rows].join("\n");
}

function keyLine({ path, type, defaultText: defaultValue, required, meaning }: KeyRow): string {
  const otherwise = defaultValue === null ? (required ? "" : ", optional") : `, \`${defaultValue}\` by default`;
  return `\`${path}\` (${type}${otherwise}): ${meaning}`;
}

const titledYaml = (title: string, yaml: string): string => `## ${title}\n\n${yamlBlock(yaml)}`;

const yamlBlock = (yaml: string): string => `\`\`\`yaml\n${yaml.trimEnd()}\n\`\`\``;

const joinSections = (parts: readonly string[]): string =>
  `${parts.join("\n\n")}\n\n<!-- Generated from the schema by \`npm run docs\`: change it there. -->\n`;
