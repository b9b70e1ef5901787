import { fail, ok, type Result } from "../base/result.ts";
import { type Bearings, checkValue } from "./check.ts";
import { placeIn } from "./mark.ts";
import { type PolicyConfig, policyFileSchema } from "./policy.ts";
import { type ConfigProblem, problemOf, quote } from "./problem.ts";
import { type Read, readAs } from "./read.ts";

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
  const read = files.map((file) => readPolicyFile(file, bearings));
  const fine = read.flatMap((result) => (result.ok ? [result.value] : []));
  const problems = [...read.flatMap((result) => (result.ok ? [] : result.error)), ...doubles(fine)];
  return problems.length === 0 ? ok(fine) : fail(problems);
}

function readPolicyFile(file: string, bearings: Bearings): Result<PolicyFile, readonly ConfigProblem[]> {
  const { source, resolvePath } = bearings;
  const text = source.readFile?.(file) ?? fail("there is nobody to read it");
  if (!text.ok) {
    const message = `it can't be read: ${text.error}`;
    return fail([
      problemOf(file, { ...WHOLE, found: "nothing", expected: "must be a file that can be read", message }),
    ]);
  }
  const read = readAs(
    policyFileSchema,
    { file, text: text.value, env: source.env },
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
