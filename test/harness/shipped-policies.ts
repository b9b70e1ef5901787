import { settingsOf } from "../../src/daemon/active-config.ts";
import { judgeConfig } from "../../src/cli/config/config-loading.ts";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import type { Rules } from "../../src/remediation/context.ts";
import type { WatchSettings } from "../../src/collectors/collector-manager.ts";
import { rulesOf, safetyOf } from "../../src/daemon/policy-settings.ts";
import { inRepository, textOf } from "../monitoring/repository-files.ts";

/** The shipped configuration with `enforce` for each `dry_run`: the rules, and what the collectors do. */
export function shippedAndEnforced(): { readonly rules: Rules; readonly settings: WatchSettings } {
  const file = "config/proxywarden.yaml";
  const loaded = judgeConfig(inRepository(file), textOf(file), { PROXYWARDEN_API_KEY: "sesame" });
  if (!loaded.ok) throw new Error(loaded.error.map(formatProblem).join("\n"));
  const { config } = loaded.value;
  const rules: Rules = {
    policies: rulesOf(loaded.value).map((rule) => ({ ...rule, mode: "enforce" })),
    safety: { ...safetyOf(config), mode: "enforce" },
    intervals: [],
  };
  return { rules, settings: settingsOf(config, rules) };
}
