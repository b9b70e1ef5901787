import type { LoadedConfig } from "../../config/load.ts";
import { policyRulesOf } from "../../config/policy-file.ts";
import type { Config } from "../../config/schema/config.ts";
import type { PolicyRule } from "../../model/policy/policy.ts";
import { compileExpression } from "../../policy/cel/expression.ts";
import { actsOnNodes, zeroLimits } from "../../policy/guards/worst-case.ts";

/** Returns why no policy acts without an operator. The list is empty if at least one policy may act. */
export function enforcementObstacles({ config, policies }: LoadedConfig): readonly string[] {
  const rules = policyRulesOf(policies);
  if (rules.length === 0) return ["no policy is in force: policies names no file"];
  const obstacles = fleetObstacles(config);
  const ofPolicies = rules.map((rule) => policyObstacles(rule, config));
  if (ofPolicies.every((reasons) => reasons.length > 0)) {
    obstacles.push(...rules.map(({ name }, index) => `policy ${name} ${ofPolicies[index]!.join(", and ")}`));
  }
  return obstacles;
}

function fleetObstacles({ safety }: Config): string[] {
  const ceilings = {
    dry_run: ["safety.mode is dry_run, the ceiling over the mode of every policy"],
    approve: ["safety.mode is approve: an operator must approve each action"],
    enforce: [],
  };
  return [...ceilings[safety.mode], ...zeroLimits(safety).map((limit) => `safety.${limit} is 0`)];
}

function policyObstacles(rule: PolicyRule, { service }: Config): string[] {
  const compiled = compileExpression(rule.when);
  const readsUsage = compiled.ok && compiled.value.fields.some(({ isUsage }) => isUsage);
  return [
    ...(rule.mode === "dry_run" ? ["has the mode dry_run"] : []),
    ...(rule.mode === "approve" ? ["has the mode approve: an operator must approve each action"] : []),
    ...(actsOnNodes(rule) ? [] : ["has no step that acts on a node"]),
    ...(readsUsage && service.usage_scale === undefined ? ["reads usage, and service.usage_scale is not set"] : []),
  ];
}

/** Formats the obstacles. Returns an empty string if there are none. */
export const formatObstacles = (obstacles: readonly string[]): string =>
  obstacles.length === 0 ? "" : `enforces nothing because\n${obstacles.map((obstacle) => `  ${obstacle}\n`).join("")}`;
