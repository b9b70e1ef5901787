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
import { type GeneratedFile, generate, json, readText } from "./generated.ts";
import { metricsReference, withHolds } from "./metrics/reference.ts";
import { expressionReference } from "./policy/reference.ts";
import { defaultScenario } from "./simulator/defaults.ts";

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
