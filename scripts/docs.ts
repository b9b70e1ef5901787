import { CHART, chartReadme, prometheusRuleManifest } from "./deployment.ts";
import { formatJson, type GeneratedFile, readText, writeGeneratedFiles } from "./generated-files.ts";
import {
  configJsonSchema,
  configReference,
  policyJsonSchema,
  policyReference,
  scenarioJsonSchema,
  scenarioReference,
  webJsonSchema,
} from "./reference/config-reference.ts";
import { expressionReference } from "./reference/expression-reference.ts";
import { insertHoldTable, metricsReference } from "./reference/metrics-reference.ts";
import { policyTestJsonSchema, policyTestReference } from "./reference/policy-test-reference.ts";

/** Every document and schema that is generated from the schemas and tables of the source. */
export const generatedFiles: readonly GeneratedFile[] = [
  {
    path: "docs/config.md",
    content: () => configReference(readText("config/proxywarden.yaml") ?? "", readText("config/web.yml") ?? ""),
  },
  { path: "config/proxywarden.schema.json", content: () => formatJson(configJsonSchema()) },
  { path: "config/web.schema.json", content: () => formatJson(webJsonSchema()) },
  {
    path: "docs/policies.md",
    content: () => policyReference(expressionReference(), readText("config/policies/offline.yaml") ?? ""),
  },
  { path: "config/policies.schema.json", content: () => formatJson(policyJsonSchema()) },
  {
    path: "docs/policy-tests.md",
    content: () => policyTestReference(readText("config/policies/tests/offline.yaml") ?? ""),
  },
  { path: "config/policytest.schema.json", content: () => formatJson(policyTestJsonSchema()) },
  {
    path: "docs/simulator.md",
    content: () => scenarioReference(readText("config/scenarios/rough-day.yaml") ?? ""),
  },
  { path: "docs/metrics.md", content: metricsReference },
  { path: "docs/remediation.md", content: () => insertHoldTable(readText("docs/remediation.md") ?? "") },
  { path: "config/scenario.schema.json", content: () => formatJson(scenarioJsonSchema()) },
  { path: "deploy/kubernetes/monitoring/rules.yaml", content: prometheusRuleManifest },
  { path: `${CHART}/README.md`, content: chartReadme },
];

if (import.meta.main) writeGeneratedFiles(generatedFiles, "docs", process.argv.slice(2));
