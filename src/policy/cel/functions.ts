import type { METHODS } from "./term.ts";

/** A function that expressions may call. */
export interface FunctionRow {
  readonly name: "duration" | "timestamp" | "ratio" | (typeof METHODS)[number];
  /** An example of a call. */
  readonly form: string;
  readonly help: string;
}

/** The supported functions. Other functions of CEL are rejected. */
export const FUNCTIONS: readonly FunctionRow[] = [
  {
    name: "duration",
    form: 'duration("10m")',
    help: "A duration in the format of the configuration: 30s, 1h30m, 7d. Unlike CEL's own format, it supports days, but neither fractions such as 1.5h nor negative durations.",
  },
  {
    name: "timestamp",
    form: 'timestamp("2026-01-31T00:00:00Z")',
    help: "A timestamp in ISO 8601, in UTC or with an offset.",
  },
  { name: "ratio", form: "ratio(a, b)", help: "a divided by b; unknown if b is 0." },
  { name: "contains", form: 'TEXT.contains("eu")', help: "Whether the string contains the argument." },
  { name: "startsWith", form: 'TEXT.startsWith("vip-")', help: "Whether the string begins with the argument." },
  { name: "endsWith", form: 'TEXT.endsWith("-1")', help: "Whether the string ends with the argument." },
];

const WRITE_OUT_CASES = "write each case and join them with || or &&";
const MISSING_IS_UNKNOWN = "a missing field is already unknown";

/** CEL features that policies do not support, with the reason and what to write instead. */
export const UNSUPPORTED_SYNTAX: ReadonlyMap<string, string> = new Map([
  ["/", "a division by 0 has no value; use ratio(a, b), which is unknown if b is 0"],
  ["%", "a division by 0 has no remainder"],
  ["matches", "regular expressions can take unbounded time; use contains, startsWith or endsWith"],
  ["has", MISSING_IS_UNKNOWN],
  ["exists", WRITE_OUT_CASES],
  ["exists_one", WRITE_OUT_CASES],
  ["all", WRITE_OUT_CASES],
  ["filter", WRITE_OUT_CASES],
  ["map", WRITE_OUT_CASES],
  ["bind", "write the expression in place of the variable"],
  ["dyn", "it hides the type of its argument"],
  ["null", MISSING_IS_UNKNOWN],
]);
