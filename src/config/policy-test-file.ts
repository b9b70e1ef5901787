import { fail, ok, type Result } from "../base/result.ts";
import { type ConfigSource, createChecks } from "./checks.ts";
import {
  type ConfigProblem,
  type Finding,
  listNames,
  mergeProblems,
  type Path,
  quote,
  toProblems,
} from "./diagnostics/problem.ts";
import { policiesInOrder, readPolicyFiles } from "./policy-file.ts";
import type { PolicySpec } from "./schema/policy.ts";
import { BACKGROUND_NODE_ID, type PolicyTestFile, policyTestSchema } from "./schema/policy-test.ts";
import { type Marks, positionIn } from "./yaml/position.ts";
import { type ReadDocument, readYaml } from "./yaml-reader.ts";

/** A file of policy tests and its policies. */
export interface LoadedPolicyTests {
  readonly file: PolicyTestFile;
  readonly policies: readonly PolicySpec[];
  readonly marks: Marks;
}

/** Reads a file of policy tests and its policies. Fails with every error of all files. */
export function loadPolicyTests(source: ConfigSource): Result<LoadedPolicyTests, readonly ConfigProblem[]> {
  const paths = new Set<string>();
  const main = readYaml(policyTestSchema(source.checks.holdReasons), source, createChecks(source, null, paths));
  const windows = main.ok ? main.value.value.time_intervals.map(({ name }) => name) : null;
  // Tests define time intervals, but neither receivers nor integrations.
  const names = windows && { receivers: null, windows, prometheus: true, alertmanager: true };
  const files = readPolicyFiles([...paths].toSorted(), source, names);
  if (!main.ok || !files.ok) {
    return fail(mergeProblems([main, files].map((read) => (read.ok ? [] : read.error))));
  }
  const policies = policiesInOrder(files.value);
  const problems = findNameProblems(main.value, policies);
  return problems.length > 0 ? fail(problems) : ok({ file: main.value.value, policies, marks: main.value.marks });
}

/** Returns the problems of nodes whose id is taken, and of unknown and ambiguous names in expectations. */
function findNameProblems(
  { file, value, marks }: ReadDocument<PolicyTestFile>,
  policies: readonly PolicySpec[],
): readonly ConfigProblem[] {
  const known = policies.map(({ name }) => name);
  const findings: Finding[] = [];
  const reject = (path: Path, found: string, expected: string) =>
    findings.push({ ...positionIn(marks, path), path, found, expected });
  for (const [test, { nodes, testedCount, expect }] of value.tests.entries()) {
    const ids = nodes.slice(0, testedCount).map(({ id }) => id);
    for (const [index, id] of ids.entries()) {
      if (ids.indexOf(id) === index && !BACKGROUND_NODE_ID.test(id)) continue;
      const expected = "must be unique, and not an id such as fleet_1, which the fleet uses";
      reject(["tests", test, "nodes", index, "id"], quote(id), expected);
    }
    for (const [index, { node: id, policy }] of expect.entries()) {
      const path = ["tests", test, "expect", index];
      if (!ids.includes(id)) {
        reject([...path, "node"], quote(id), `must be a node of the test: ${listNames(ids)}`);
      } else if (policy === undefined && known.length !== 1) {
        reject(path, "no policy", `must name one of the policies: ${listNames(known)}`);
      } else if (policy !== undefined && !known.includes(policy)) {
        reject([...path, "policy"], quote(policy), `must be one of the policies: ${listNames(known)}`);
      }
    }
  }
  return toProblems(file, findings);
}
