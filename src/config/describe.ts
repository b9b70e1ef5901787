import type { z } from "zod";
import type { Scenario } from "../model/scenario.ts";
import { faultAlternatives } from "./fault.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";
import { cell, keyTable, rowsOf } from "./reference.ts";
import { scenarioSchema } from "./scenario.ts";
import { configSchema } from "./schema.ts";
import { meaningOf, sectionKeys } from "./shape.ts";

const WRITING = `Durations are written as Prometheus writes them: \`30s\`, \`5m\`, \`1h30m\`, \`7d\`. Shares are percentages: \`20%\`.

\`\${NAME}\` stands for an environment variable, anywhere in a value; one that isn't set is an error, and a literal \`\${\` is
written \`$\${\`. Inside \`{ }\` or \`[ ]\` a value with a variable has to be quoted. Variables are filled in after the YAML was
parsed, so that what they hold can't add keys; a variable that holds a number may stand where a number belongs.

An unknown key is an error. Every error of a file is reported at once, each with its line and column:

`;

const CONFIG_INTRO = `# Configuration

One YAML file, given with \`--config\`. Paths in it are relative to the folder it stands in.

${WRITING}\`\`\`
config/proxywarden.yaml:12:18: collect.nodes.every: found "1 minute"; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d
config/proxywarden.yaml:19:1: exports: unknown key; did you mean "export"?
\`\`\`

Editors that speak YAML (through yaml-language-server) complete and check the file by \`proxywarden.schema.json\`, which its
first line names.`;

const SCENARIO_INTRO = `# Scenarios of the simulator

\`simulate --scenario FILE\` serves a simulated network, described in YAML. Everything that happens follows from the seed.
What a file leaves out is as the tables say.

${WRITING}\`\`\`
rough-day.yaml:9:14: faults[2].for: found 90; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d
rough-day.yaml:12:11: faults[3].kind: found "hangs"; must be one of status, hang, reset, …; did you mean "hang"?
\`\`\``;

/** The reference of the configuration, in Markdown. `example` is the text of a whole, commented file. */
export function configReference(example: string): string {
  const sections = Object.entries(configSchema.shape).map(sectionReference);
  return page([CONFIG_INTRO, ...sections, fenced("Example", example)]);
}

function sectionReference([name, schema]: [string, z.core.$ZodType]): string {
  return `## ${name}\n\n${meaningOf(schema)}\n\n${keyTable(rowsOf(name, schema).slice(1))}`;
}

/** JSON Schema of the configuration file, for editors. */
export const configJsonSchema = (): JsonSchema => jsonSchemaOf(configSchema, "proxywarden configuration");

/** The reference of scenario files, in Markdown. */
export function scenarioReference(defaults: Scenario, example: string): string {
  const { faults: _, ...keys } = scenarioSchema(defaults).in.shape;
  const isSection = ([, schema]: [string, z.core.$ZodType]) => sectionKeys(schema) !== null;
  const single = Object.entries(keys).filter((entry) => !isSection(entry));
  const sections = Object.entries(keys).filter(isSection).map(sectionReference);
  const top = keyTable(single.flatMap(([name, schema]) => rowsOf(name, schema)));
  return page([SCENARIO_INTRO, top, ...sections, faultScript(), fenced("Example", example)]);
}

/** JSON Schema of scenario files, for editors. */
export const scenarioJsonSchema = (defaults: Scenario): JsonSchema =>
  jsonSchemaOf(scenarioSchema(defaults), "proxywarden scenario");

/** Keys that all faults share once, then what each kind does and needs beside. */
function faultScript(): string {
  const { common, kinds } = faultAlternatives();
  const shared = Object.entries(common).flatMap(([key, schema]) => rowsOf(`faults[].${key}`, schema));
  const rows = kinds.map(({ kind, meaning, keys }) => {
    const own = Object.entries(keys).flatMap(([key, schema]) => rowsOf(key, schema));
    const needs = own.map(({ path, type, required, meaning: what }) => {
      return `\`${path}\` (${type}${required ? "" : ", optional"}): ${what}`;
    });
    return `| \`${kind}\` | ${cell(meaning)} | ${cell(needs.join("<br>"))} |`;
  });
  return [
    "## faults",
    "What goes wrong, and when: a list. Every entry has a `kind`, and:",
    keyTable(shared),
    ["| kind | what it does | keys of its own |", "| --- | --- | --- |", ...rows].join("\n"),
  ].join("\n\n");
}

const fenced = (title: string, yaml: string): string => `## ${title}\n\n\`\`\`yaml\n${yaml.trimEnd()}\n\`\`\``;

const page = (parts: readonly string[]): string =>
  `${parts.join("\n\n")}\n\n<!-- Generated from the schema by \`npm run docs\`: change it there. -->\n`;
