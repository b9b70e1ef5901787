import { globSync } from "node:fs";
import { CHART, chartReadme } from "./chart-readme.ts";
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

const RULE_FILES = "config/prometheus/rules/*.yml";

/** Every document, schema and manifest that is generated from the schemas and tables of the source, or from the rules. */
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

/**
 * Returns the rules of Prometheus as a manifest for the Prometheus Operator: all groups of `config/prometheus/rules`, with their
 * comments.
 */
function prometheusRuleManifest(): string {
  const groups = globSync(RULE_FILES, { cwd: `${import.meta.dirname}/..` })
    .toSorted()
    .map((path) => readText(path)!.replace(/^[\s\S]*?^groups:\n/m, ""))
    .join("\n");
  return `# Generated from ${RULE_FILES} by npm run docs.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: proxywarden
  labels:
    app.kubernetes.io/name: proxywarden
spec:
  groups:
${groups.replace(/^(?=.)/gm, "  ")}`;
}

if (import.meta.main) writeGeneratedFiles(generatedFiles, "docs", process.argv.slice(2));
