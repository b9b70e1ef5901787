import { fail, ok, type Result } from "../base/result.ts";
import { type Bearings, checkValue, readNamed } from "./checks.ts";
import { TEXT_LENGTH_MAX } from "./yaml/document.ts";
import { placeIn } from "./yaml/position.ts";
import { type PolicyConfig, policyFileSchema } from "./schema/policy.ts";
import { type ConfigProblem, joinProblems, problemOf, quote } from "./diagnostics/problem.ts";
import { type Read, readAs } from "./schema-reader.ts";

/** A policy, and where it stands. */
export interface LoadedPolicy {
  readonly policy: PolicyConfig;
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A policy file that was read. */
export interface PolicyFile {
  readonly file: string;
  readonly read: Read<{ readonly policies: readonly PolicyConfig[] }>;
}

/** What a fleet is watched for goes into some files; a glob that finds more of them is the wrong glob. */
const FILES_MAX = 200;

const WHOLE = { line: 1, column: 1, path: [] } as const;

/** Reads policy files, in that order. Fails with every problem of all of them. */
export function readPolicyFiles(
  files: readonly string[],
  bearings: Bearings,
): Result<readonly PolicyFile[], readonly ConfigProblem[]> {
  if (files.length > FILES_MAX) {
    const found = `${files.length} policy files`;
    return fail([problemOf(bearings.source.file, { ...WHOLE, found, expected: `must be at most ${FILES_MAX}` })]);
  }
  const fine: PolicyFile[] = [];
  const problems: (readonly ConfigProblem[])[] = [];
  let length = 0;
  for (const file of files) {
    const text = readNamed(file, bearings.source.readFile);
    length += text.ok ? text.value.length : 0;
    if (length > TEXT_LENGTH_MAX && files.length > 1) {
      problems.push([excess(file, length)]);
      break;
    }
    const read = text.ok ? readPolicies(file, text.value, bearings) : text;
    if (read.ok) fine.push(read.value);
    else problems.push(read.error);
  }
  const all = joinProblems([...problems, doubles(fine)]);
  return all.length === 0 ? ok(fine) : fail(all);
}

/** The files are measured together, because they are compiled and put in force together. */
function excess(file: string, length: number): ConfigProblem {
  const found = `${length} characters`;
  const expected = `must have at most ${TEXT_LENGTH_MAX}`;
  const message = `the policy files are too large: together they have ${found} up to here, and may have at most ${TEXT_LENGTH_MAX}`;
  return problemOf(file, { ...WHOLE, found, expected, message });
}

function readPolicies(file: string, text: string, bearings: Bearings): Result<PolicyFile, readonly ConfigProblem[]> {
  const { source, resolvePath } = bearings;
  const read = readAs(
    policyFileSchema,
    { file, text, env: source.env },
    { check: (check, value) => checkValue(check, value, bearings), resolvePath },
  );
  return read.ok ? ok({ file, read: read.value }) : read;
}

/** The policies of some files, in the order in which they come to act. */
export const policiesOf = (files: readonly PolicyFile[]): LoadedPolicy[] =>
  files.flatMap(({ file, read }) =>
    read.value.policies.map((policy, index) => ({ policy, file, ...placeIn(read.marks, ["policies", index, "name"]) })),
  );

/** A name is one policy's, in whatever file: its timers and episodes are kept by it. */
function doubles(files: readonly PolicyFile[]): ConfigProblem[] {
  const places = new Map<string, string>();
  return files.flatMap(({ file, read }) =>
    read.value.policies.flatMap(({ name }, index) => {
      const path = ["policies", index, "name"];
      const place = placeIn(read.marks, path);
      const first = places.get(name);
      if (first === undefined) {
        places.set(name, `${file}:${place.line}:${place.column}`);
        return [];
      }
      const expected = `must be a name of its own: it is already given at ${first}`;
      return [problemOf(file, { ...place, path, found: quote(name), expected })];
    }),
  );
}
