import { parseConfig } from "../../src/cli/config/config-loading.ts";
import type { CollectionSettings } from "../../src/collectors/collector-manager.ts";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import { collectionSettingsOf } from "../../src/daemon/config-resources.ts";
import type { RemediationRules } from "../../src/remediation/context.ts";
import { inRepository, textOf } from "../monitoring/repository-files.ts";

/**
 * The shipped configuration with a usage scale and `enforce` for each `dry_run`: the rules, and what the collectors do.
 */
export function enforcedShippedPolicies(): { readonly rules: RemediationRules; readonly settings: CollectionSettings } {
  const file = "config/proxywarden.yaml";
  const text = textOf(file).replace("# usage_scale: ratio", "usage_scale: ratio");
  const loaded = parseConfig(inRepository(file), text, { PROXYWARDEN_API_KEY: "sesame" });
  if (!loaded.ok) throw new Error(loaded.error.map(formatProblem).join("\n"));
  const { config } = loaded.value;
  const rules: RemediationRules = {
    policies: loaded.value.policies.map((rule) => ({ ...rule, mode: "enforce" })),
    safety: { ...config.safety, mode: "enforce" },
    intervals: [],
  };
  return { rules, settings: collectionSettingsOf(config, rules) };
}
