import { parseConfig } from "../../src/cli/config/config-loading.ts";
import type { CollectionSettings } from "../../src/collectors/collector-manager.ts";
import { collectionSettingsOf } from "../../src/daemon/config-resources.ts";
import type { RemediationConfig } from "../../src/remediation/context.ts";
import { inRepository, textOf } from "../monitoring/repository-files.ts";
import { orThrow } from "./or-throw.ts";

/**
 * The policies and limits of the shipped configuration, with `enforce` for each `dry_run`, and what the collectors do
 * with a usage scale.
 */
export function enforcedShippedPolicies(): {
  readonly config: RemediationConfig;
  readonly settings: CollectionSettings;
} {
  const file = "config/proxywarden.yaml";
  const text = textOf(file).replace("# usage_scale: ratio", "usage_scale: ratio");
  const loaded = orThrow(parseConfig(inRepository(file), text, { PROXYWARDEN_API_KEY: "sesame" }));
  const { config: shipped } = loaded;
  const config: RemediationConfig = {
    policies: loaded.policies.map((spec) => ({ ...spec, mode: "enforce" })),
    safety: { ...shipped.safety, mode: "enforce" },
    time_intervals: [],
  };
  return { config, settings: collectionSettingsOf({ ...shipped, safety: config.safety }, config.policies) };
}
