import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  configJsonSchema,
  configReference,
  policyJsonSchema,
  policyReference,
  scenarioJsonSchema,
  scenarioReference,
  webJsonSchema,
} from "./config/describe.ts";
import { policyTestJsonSchema, policyTestReference } from "./config/describetest.ts";
import { metricsReference } from "./metrics/reference.ts";
import { expressionReference } from "./policy/reference.ts";
import { defaultScenario } from "./simulator/defaults.ts";

/** A file that is written from the tables that run, and never by hand. */
export interface GeneratedFile {
  /** From the root of the repository. */
  readonly path: string;
  content(): string;
}

/** Every generated file. */
export const generatedFiles: readonly GeneratedFile[] = [
  {
    path: "docs/config.md",
    content: () => configReference(readText("config/proxywarden.yaml") ?? "", readText("config/web.yml") ?? ""),
  },
  { path: "config/proxywarden.schema.json", content: () => json(configJsonSchema()) },
  { path: "config/web.schema.json", content: () => json(webJsonSchema()) },
  {
    path: "docs/policies.md",
    content: () => policyReference(expressionReference(), readText("config/policies/offline.yaml") ?? ""),
  },
  { path: "config/policies.schema.json", content: () => json(policyJsonSchema()) },
  {
    path: "docs/policy-tests.md",
    content: () => policyTestReference(readText("config/policies/tests/offline.yaml") ?? ""),
  },
  { path: "config/policytest.schema.json", content: () => json(policyTestJsonSchema()) },
  {
    path: "docs/simulator.md",
    content: () => scenarioReference(defaultScenario, readText("config/scenarios/rough-day.yaml") ?? ""),
  },
  { path: "docs/metrics.md", content: metricsReference },
  { path: "config/scenario.schema.json", content: () => json(scenarioJsonSchema(defaultScenario)) },
];

/** The generated files whose content is not what it would be if they were written now. */
export const staleFiles = (): readonly GeneratedFile[] =>
  generatedFiles.filter(({ path, content }) => readText(path) !== content());

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const fromRoot = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

function readText(path: string): string | null {
  try {
    return readFileSync(fromRoot(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Writes every stale file; with `--check` only names them, and is unhappy if there are any. */
function main(options: readonly string[]): void {
  const unknown = options.filter((option) => option !== "--check");
  if (unknown.length > 0) {
    console.error(`unknown option ${unknown.join(" ")}; the only one is --check`);
    process.exitCode = 2;
    return;
  }
  const check = options.includes("--check");
  for (const { path, content } of staleFiles()) {
    if (!check) {
      mkdirSync(dirname(fromRoot(path)), { recursive: true });
      writeFileSync(fromRoot(path), content());
    }
    console.log(check ? `${path} is out of date: run npm run docs` : `${path} written`);
    if (check) process.exitCode = 1;
  }
}

if (import.meta.main) main(process.argv.slice(2));
