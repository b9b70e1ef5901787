/** A function that expressions may call. */
export interface FunctionRow {
  readonly name: "duration" | "timestamp" | "ratio" | "contains" | "startsWith" | "endsWith";
  /** Called on a text, as in `node.name.contains("eu")`. */
  readonly isMethod: boolean;
  /** How it is written. */
  readonly form: string;
  readonly help: string;
}

/** Every function there is; what CEL has besides is refused. */
export const FUNCTIONS: readonly FunctionRow[] = [
  {
    name: "duration",
    isMethod: false,
    form: 'duration("10m")',
    help: "A length of time, written as everywhere in the configuration: 30s, 1h30m, 7d. Unlike CEL's own form, it has days; fractions such as 1.5h and negative durations are not accepted.",
  },
  {
    name: "timestamp",
    isMethod: false,
    form: 'timestamp("2026-01-31T00:00:00Z")',
    help: "An instant, in ISO 8601, in UTC or with an offset.",
  },
  {
    name: "ratio",
    isMethod: false,
    form: "ratio(a, b)",
    help: "a divided by b; unknown where b is 0.",
  },
  { name: "contains", isMethod: true, form: 'TEXT.contains("eu")', help: "Whether the text has the other within it." },
  {
    name: "startsWith",
    isMethod: true,
    form: 'TEXT.startsWith("vip-")',
    help: "Whether the text begins with the other.",
  },
  { name: "endsWith", isMethod: true, form: 'TEXT.endsWith("-1")', help: "Whether the text ends with the other." },
];

const WRITE_OUT_CASES = "write the cases out, joined by || or &&";

/** What CEL has and policies refuse, by how it is written, and what to do instead. */
export const UNSUPPORTED_SYNTAX: ReadonlyMap<string, string> = new Map([
  ["/", "a division by 0 has no value; use ratio(a, b), which is unknown if b is 0"],
  ["%", "the remainder by 0 is undefined"],
  ["matches", "regular expressions can take unbounded time; use contains, startsWith or endsWith"],
  ["has", "a field that is missing is unknown by itself"],
  ["exists", WRITE_OUT_CASES],
  ["exists_one", WRITE_OUT_CASES],
  ["all", WRITE_OUT_CASES],
  ["filter", WRITE_OUT_CASES],
  ["map", WRITE_OUT_CASES],
  ["bind", WRITE_OUT_CASES],
  ["dyn", "it would hide the type of what it wraps"],
  ["null", "a field that is missing is unknown by itself"],
]);

/** The function of that name; null: there is none. */
export const findFunction = (name: string): FunctionRow | null => FUNCTIONS.find((row) => row.name === name) ?? null;
