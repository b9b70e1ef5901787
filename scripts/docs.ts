import {
  configJsonSchema,
  configReference,
  policyJsonSchema,
  policyReference,
  scenarioJsonSchema,
  scenarioReference,
  webJsonSchema,
} from "../src/config/reference/config-reference.ts";
import { policyTestJsonSchema, policyTestReference } from "../src/config/reference/policy-test-reference.ts";
import { type GeneratedFile, generate, json, readText } from "./generated-files.ts";
import { metricsReference, withHolds } from "../src/metrics/reference.ts";
import { expressionReference } from "../src/policy/cel/reference.ts";
import { defaultScenario } from "../src/simulator/default-scenarios.ts";

/** Every document and schema that is written from the tables that run. */
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
  { path: "docs/remediation.md", content: () => withHolds(readText("docs/remediation.md") ?? "") },
  { path: "config/scenario.schema.json", content: () => json(scenarioJsonSchema(defaultScenario)) },
];

if (import.meta.main) generate(generatedFiles, "docs", process.argv.slice(2));
