import { fail, ok, type Result } from "../base/result.ts";
import type { ConfigSource } from "./checks.ts";
import type { ConfigProblem } from "./diagnostics/problem.ts";
import { loadConfig } from "./load.ts";
import { type LoadedPolicy, policiesInOrder, readPolicyFiles } from "./policy-file.ts";
import { parseYaml } from "./yaml/document.ts";

/** Reads the policies of a policy file, or, by its section `service`, of a whole configuration. */
export function loadPolicies(source: ConfigSource): Result<readonly LoadedPolicy[], readonly ConfigProblem[]> {
  const { value } = parseYaml(source);
  if (typeof value === "object" && value !== null && "service" in value) {
    const loaded = loadConfig(source);
    return loaded.ok ? ok(loaded.value.policies) : loaded;
  }
  const checkContext = { source, names: null, resolvePath: (path: string) => path, find: () => [] };
  const read = readPolicyFiles([source.file], checkContext);
  return read.ok ? ok(policiesInOrder(read.value)) : fail(read.error);
}
