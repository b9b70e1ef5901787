import { posix } from "node:path";
import { importsOf, type Source } from "./source-file.ts";

/** Returns one line for each violation in a file. */
type Rule = (source: Source) => readonly string[];

/**
 * The folders of `src/` from the lowest tier to the highest. A folder imports only itself and folders of lower tiers;
 * folders on one line are on the same tier and don't import each other. `main` is `src/main.ts`.
 */
const tiers: readonly (readonly string[])[] = [
  ["base"],
  ["model"],
  ["config", "rate-limit"],
  // The planner reads the limits; the rate limiter knows nothing of the plan.
  ["scheduling"],
  ["inventory"],
  ["policy"],
  ["metrics"],
  ["platform"],
  ["journal", "api-client"],
  ["notify", "collectors"],
  ["remediation"],
  ["web"],
  ["daemon"],
  ["cli"],
  ["main"],
];
const tierOf: ReadonlyMap<string, number> = new Map(
  tiers.flatMap((folders, tier) => folders.map((folder) => [folder, tier] as const)),
);
const PURE_TIER_MAX = tierOf.get("metrics")!;
/** The simulator stands beside the tiers: it imports these and the inputs of a simulation, and only these import it. */
const SIMULATOR_IMPORTS: readonly string[] = ["base", "model"];
const SIMULATION_INPUTS: readonly string[] = ["src/config/schema/scenario.ts", "src/config/schema/policy-test.ts"];
const SIMULATOR_IMPORTERS: readonly string[] = ["cli"];
const FILE_LINES_MAX = 300;
/** Maximum number of files in a folder. With more, it needs subfolders. */
export const FOLDER_FILES_MAX = 16;

/** The folders or files that may import each package, and each builtin that is as good as a package. */
const vendorHomes: Readonly<Record<string, readonly string[]>> = {
  undici: ["src/api-client/"],
  "node:sqlite": ["src/journal/sqlite/"],
  pg: ["src/journal/postgres/"],
  pino: ["src/platform/"],
  "pino-pretty": ["src/platform/"],
  "node-cron": ["src/platform/"],
  bcryptjs: ["src/web/http/auth/bcrypt-worker.ts"],
  yaml: ["src/config/"],
  zod: ["src/config/"],
  "prom-client": ["src/metrics/"],
  fastify: ["src/web/"],
  uplot: ["src/web/ui/page/"],
  commander: ["src/main.ts", "src/cli/"],
  "@marcbachmann/cel-js": ["src/policy/cel/"],
};

/** Builtins that neither reach outside the process nor differ from call to call. */
const pureBuiltins: readonly string[] = ["node:path", "node:path/posix", "node:buffer", "node:util"];

const impurities: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["reads the clock", /\bDate\s*\.\s*now\b|\bnew\s+Date\b\s*(?:\(\s*\)|(?!\s*\())|(?<!\bnew\s+|[\w.$])Date\s*\(/],
  ["reads the clock", /\bperformance\b|\bhrtime\b/],
  ["is random", /\bMath\s*\.\s*random\b|\brandomUUID\b|\bgetRandomValues\b/],
  ["waits", /\basync\b|\bawait\b/],
  ["sets a timer", /\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b|\bnextTick\b/],
  ["reaches outside", /\bprocess\s*\.|\bconsole\s*\.|\bfetch\s*\(|\bglobalThis\b/],
];

/** The folder below `src/` that a file belongs to; `main` for `src/main.ts`. */
function folderOf(path: string): string {
  const [, folder, ...rest] = path.split("/");
  if (rest.length > 0) return String(folder);
  return path === "src/main.ts" ? "main" : "src";
}

const isRelative = (specifier: string) => specifier.startsWith(".");

/** An import points to a lower tier or stays in its folder. */
const importDirection: Rule = (source) => {
  const folder = folderOf(source.path);
  if (folder !== "simulator" && !tierOf.has(folder)) return [`${source.path}: the folder ${folder} is on no tier`];
  return importsOf(source)
    .filter(isRelative)
    .map((specifier) => posix.join(posix.dirname(source.path), specifier))
    .filter((target) => !mayImport(folder, target))
    .map((target) => `${source.path}: may not import ${target}`);
};

function mayImport(folder: string, target: string): boolean {
  if (!target.startsWith("src/") || !target.endsWith(".ts")) return false;
  const imported = folderOf(target);
  if (imported === folder) return true;
  if (folder === "simulator") return SIMULATOR_IMPORTS.includes(imported) || SIMULATION_INPUTS.includes(target);
  if (imported === "simulator") return SIMULATOR_IMPORTERS.includes(folder);
  return (tierOf.get(imported) ?? Number.POSITIVE_INFINITY) < tierOf.get(folder)!;
}

/** A package is imported in its home only; a new package gets its home in {@link vendorHomes} first. */
const vendorHome: Rule = (source) =>
  importsOf(source)
    .filter((specifier) => !isRelative(specifier))
    .flatMap((specifier) => {
      const vendor = specifier.startsWith("node:") ? specifier : packageOf(specifier);
      const homes = vendorHomes[vendor] ?? (specifier.startsWith("node:") ? [""] : []);
      return homes.some((home) => source.path.startsWith(home)) ? [] : [`${source.path}: may not import ${specifier}`];
    });

const packageOf = (specifier: string) =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

/** The pure tiers do no IO, read no clock, use no randomness and wait for nothing. */
const purity: Rule = (source) => {
  const tier = tierOf.get(folderOf(source.path));
  if (tier === undefined || tier > PURE_TIER_MAX) return [];
  const outside = importsOf(source)
    .filter((specifier) => specifier.startsWith("node:") && !pureBuiltins.includes(specifier))
    .map((specifier) => `${source.path}: a pure tier may not import ${specifier}`);
  const impure = impurities.flatMap(([what, pattern]) => found(source, pattern, `${what}, in a pure tier`));
  return [...outside, ...impure];
};

/** Only the entry point ends the process. */
const processExit: Rule = (source) =>
  source.path === "src/main.ts"
    ? []
    : found(source, /\bprocess\s*\.\s*(?:exit\s*\(|abort\b|reallyExit\b)/, "ends the process");

/** A file over the limit has two subjects. */
const fileLength: Rule = ({ path, text }) => {
  const lines = text.split("\n").length - 1;
  return lines > FILE_LINES_MAX ? [`${path}: has ${lines} lines, more than ${FILE_LINES_MAX}`] : [];
};

/** File names are kebab-case and say what is in the file, and a file exports by name what it defines. */
const naming: Rule = (source) => [
  ...(/(?:^|\/)(?:index|utils?|helpers?|managers?|common|misc|shared)(?:\.ts|\/)/.test(source.path)
    ? [`${source.path}: the name says nothing about the content`]
    : []),
  ...(/^(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*(?:\.(?:world|system))?(?:\.test)?\.ts$/.test(
    source.path,
  )
    ? []
    : [`${source.path}: the name is not kebab-case`]),
  ...found(source, /\bexport\s*(?:\*|(?:type\s*)?\{[^}]*\})\s*(?:as\s+\w+\s*)?from\b/, "re-exports another file"),
  ...found(source, /\bexport\s+default\b/, "has a default export"),
];

const exported = /^export (?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/;

/**
 * Every export has a docstring: its own, that of the group which it follows without a blank line, or, for a type
 * derived from a constant by typeof, that of the constant.
 */
const docstrings: Rule = ({ path, text, code }) => {
  const lines = text.split("\n");
  const codeLines = code.split("\n");
  return codeLines.flatMap((line, index) => {
    const name = exported.exec(line)?.[1];
    const before = (lines[index - 1] ?? "").trim();
    const derived = /^export type .*\btypeof\b/.test(line) && before !== "";
    if (name === undefined || before.endsWith("*/") || derived || codeLines[index - 1]?.startsWith("export "))
      return [];
    return [`${path}:${index + 1}: ${name} has no docstring`];
  });
};

/** Tests replace no modules, and all of them run. */
const testConventions: Rule = (source) => [
  ...found(source, /\bvi\s*\.\s*(?:mock|doMock|hoisted|importActual)\b/, "replaces a module"),
  ...found(source, /\.\s*(?:skip|only|todo|skipIf|runIf)\s*[.(`]/, "skips tests"),
  ...found(source, /\.\s*toMatch(?:File)?Snapshot\b/, "compares with a recorded snapshot"),
];

/** Every rule over a single file, by name. */
export const rules = {
  importDirection,
  vendorHome,
  purity,
  processExit,
  fileLength,
  naming,
  docstrings,
  testConventions,
} satisfies Record<string, Rule>;

/** Returns a line for each folder that holds more than {@link FOLDER_FILES_MAX} of the files. */
export function crowdedFolders(paths: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => `${folder}: has ${count} files, more than ${FOLDER_FILES_MAX}`);
}

function found({ path, code }: Source, pattern: RegExp, what: string): string[] {
  return [...code.matchAll(new RegExp(pattern, "g"))].map(({ index }) => {
    const line = code.slice(0, index).split("\n").length;
    return `${path}:${line}: ${what}`;
  });
}
