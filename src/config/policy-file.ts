import { fail, ok, type Result } from "../base/result.ts";
import { type ConfigSource, createChecks, type DefinedNames, readReferencedFile } from "./checks.ts";
import { type ConfigProblem, DOCUMENT_START, mergeProblems, quote, toProblem } from "./diagnostics/problem.ts";
import { TEXT_LENGTH_MAX } from "./diagnostics/yaml-faults.ts";
import type { PolicySpec } from "./schema/policy.ts";
import { policyFileSchema } from "./schema/policy.ts";
import { positionIn } from "./yaml/position.ts";
import { type ReadDocument, readYaml } from "./yaml-reader.ts";

/** A policy file that was read. */
export type PolicyFile = ReadDocument<{ readonly policies: readonly PolicySpec[] }>;

/** Maximum number of policy files. A glob that matches more files is most likely wrong. */
const FILES_MAX = 200;

/**
 * Reads the policy files of a configuration, in the given order. Fails with every problem of all of them. Policies may
 * refer only to `names`, or to any name if that is null.
 */
export function readPolicyFiles(
  files: readonly string[],
  source: ConfigSource,
  names: DefinedNames | null,
): Result<readonly PolicyFile[], readonly ConfigProblem[]> {
  if (files.length > FILES_MAX) {
    const found = `${files.length} policy files`;
    return fail([toProblem(source.file, { ...DOCUMENT_START, found, expected: `must be at most ${FILES_MAX}` })]);
  }
  const valid: PolicyFile[] = [];
  const problems: (readonly ConfigProblem[])[] = [];
  const { env, readFile } = source;
  let length = 0;
  for (const file of files) {
    const text = readReferencedFile(file, readFile);
    length += text.ok ? text.value.length : 0;
    // A single file that is too large is rejected when it is parsed.
    if (length > TEXT_LENGTH_MAX && files.length > 1) {
      problems.push([sizeProblem(file, length)]);
      break;
    }
    const read = text.ok
      ? readYaml(policyFileSchema, { file, text: text.value, env }, createChecks(source, names))
      : text;
    if (read.ok) valid.push(read.value);
    else problems.push(read.error);
  }
  const all = mergeProblems([...problems, duplicateNames(valid)]);
  return all.length === 0 ? ok(valid) : fail(all);
}

/**
 * Returns the problem of policy files that are too large. The limit is for all files together, because they are
 * compiled together.
 */
function sizeProblem(file: string, length: number): ConfigProblem {
  const found = `${length} characters`;
  const expected = `must have at most ${TEXT_LENGTH_MAX}`;
  const message = `the policy files are too large: together they have ${found} up to here, and may have at most ${TEXT_LENGTH_MAX}`;
  return toProblem(file, { ...DOCUMENT_START, found, expected, message });
}

/** Returns the policies of some files, in order. */
export const policiesInOrder = (files: readonly PolicyFile[]): readonly PolicySpec[] =>
  files.flatMap(({ value }) => value.policies);

/**
 * Returns the problems of names that are used twice. Names are unique across files because timers and episodes refer to
 * them.
 */
function duplicateNames(files: readonly PolicyFile[]): ConfigProblem[] {
  const firstPositions = new Map<string, string>();
  return files.flatMap(({ file, value, marks }) =>
    value.policies.flatMap(({ name }, index) => {
      const path = ["policies", index, "name"];
      const position = positionIn(marks, path);
      const first = firstPositions.get(name);
      if (first === undefined) {
        firstPositions.set(name, `${file}:${position.line}:${position.column}`);
        return [];
      }
      const expected = `must be unique, but it is already used at ${first}`;
      return [toProblem(file, { ...position, path, found: quote(name), expected })];
    }),
  );
}
