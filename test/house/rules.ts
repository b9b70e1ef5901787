import { posix } from "node:path";
import { importsOf, type Source } from "./source.ts";

/** What is wrong with a file, a line each; nothing: all is well. */
type Rule = (source: Source) => readonly string[];

const floors: Readonly<Record<string, number>> = {
  base: 0,
  model: 1,
  budget: 2,
  config: 2,
  policy: 3,
  metrics: 3,
  service: 4,
  store: 4,
  system: 4,
  engine: 5,
  web: 6,
  top: 7,
};
const PURE_FLOOR_MAX = 3;
const FILE_LINES_MAX = 300;

/** Where each package, and each builtin that is as good as one, may be imported: folders or files. */
const vendorRooms: Readonly<Record<string, readonly string[]>> = {
  undici: ["src/service/"],
  "node:sqlite": ["src/store/"],
  pino: ["src/system/"],
  "pino-pretty": ["src/system/"],
  "node-cron": ["src/system/"],
  bcryptjs: ["src/web/bcryptworker.ts"],
  yaml: ["src/config/"],
  zod: ["src/config/", "src/service/wire.ts"],
  "prom-client": ["src/metrics/", "src/web/"],
  fastify: ["src/web/"],
  uplot: ["src/web/page/"],
  commander: ["src/main.ts", "src/commands/"],
  "@marcbachmann/cel-js": ["src/policy/expression.ts"],
};

/** Builtins that neither reach outside nor differ from call to call. */
const pureBuiltins: readonly string[] = ["node:path", "node:path/posix", "node:buffer", "node:util"];

const impurities: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["reads the clock", /\bDate\s*\.\s*now\b|\bnew\s+Date\b\s*(?:\(\s*\)|(?!\s*\())|(?<!\bnew\s+|[\w.$])Date\s*\(/],
  ["reads the clock", /\bperformance\b|\bhrtime\b/],
  ["is random", /\bMath\s*\.\s*random\b|\brandomUUID\b|\bgetRandomValues\b/],
  ["waits", /\basync\b|\bawait\b/],
  ["sets a timer", /\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b|\bnextTick\b/],
  ["reaches outside", /\bprocess\s*\.|\bconsole\s*\.|\bfetch\s*\(|\bglobalThis\b/],
];

/** `top` is what stands above the folders of the floors, and the commands: one room. */
function roomOf(path: string): string {
  const [, folder, ...rest] = path.split("/");
  return rest.length === 0 || folder === "commands" ? "top" : String(folder);
}

const isRelative = (specifier: string) => specifier.startsWith(".");

/** An import goes down the floors, or stays in its own folder; the simulator knows model and base, and only the top knows it. */
const importLaw: Rule = (source) => {
  const room = roomOf(source.path);
  if (room !== "simulator" && floors[room] === undefined) return [`${source.path}: the folder ${room} is on no floor`];
  return importsOf(source)
    .filter(isRelative)
    .map((specifier) => posix.join(posix.dirname(source.path), specifier))
    .filter((target) => !mayImport(room, target))
    .map((target) => `${source.path}: may not import ${target}`);
};

function mayImport(room: string, target: string): boolean {
  if (!target.startsWith("src/") || !target.endsWith(".ts")) return false;
  const targetRoom = roomOf(target);
  if (targetRoom === room) return true;
  if (room === "simulator") return targetRoom === "model" || targetRoom === "base";
  if (targetRoom === "simulator") return room === "top";
  return (floors[targetRoom] ?? Number.POSITIVE_INFINITY) < floors[room]!;
}

/** One room a vendor; a package that has no room yet gets one here first. */
const vendorLaw: Rule = (source) =>
  importsOf(source)
    .filter((specifier) => !isRelative(specifier))
    .flatMap((specifier) => {
      const vendor = specifier.startsWith("node:") ? specifier : packageOf(specifier);
      const rooms = vendorRooms[vendor] ?? (specifier.startsWith("node:") ? [""] : []);
      return rooms.some((room) => source.path.startsWith(room)) ? [] : [`${source.path}: may not import ${specifier}`];
    });

const packageOf = (specifier: string) =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

/** The pure floors do no IO, read no clock, and wait for nothing. */
const purity: Rule = (source) => {
  const floor = floors[roomOf(source.path)];
  if (floor === undefined || floor > PURE_FLOOR_MAX) return [];
  const outside = importsOf(source)
    .filter((specifier) => specifier.startsWith("node:") && !pureBuiltins.includes(specifier))
    .map((specifier) => `${source.path}: a pure floor may not import ${specifier}`);
  const impure = impurities.flatMap(([what, pattern]) => found(source, pattern, `${what}, on a pure floor`));
  return [...outside, ...impure];
};

/** Only the entry point ends the process. */
const exits: Rule = (source) =>
  source.path === "src/main.ts"
    ? []
    : found(source, /\bprocess\s*\.\s*(?:exit\s*\(|abort\b|reallyExit\b)/, "ends the process");

/** A file over the limit is two rooms. */
const fileLength: Rule = ({ path, text }) => {
  const lines = text.split("\n").length - 1;
  return lines > FILE_LINES_MAX ? [`${path}: has ${lines} lines, of ${FILE_LINES_MAX} at most`] : [];
};

/** Files are nouns of the glossary, and export what they define, by name. */
const naming: Rule = (source) => [
  ...(/(?:^|\/)(?:index|utils?|helpers?|managers?|common|misc|shared)(?:\.ts|\/)/.test(source.path)
    ? [`${source.path}: is named after nothing`]
    : []),
  ...found(
    source,
    /\bexport\s*(?:\*|(?:type\s*)?\{[^}]*\})\s*(?:as\s+\w+\s*)?from\b/,
    "hands on what another file defines",
  ),
  ...found(source, /\bexport\s+default\b/, "has a default export"),
];

const exported = /^export (?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/;

/**
 * Every exported thing has a docstring: its own, that of the group which it follows without a blank line, or, for a
 * type taken from a constant by typeof, that of the constant.
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
const testManners: Rule = (source) => [
  ...found(source, /\bvi\s*\.\s*(?:mock|doMock|hoisted|importActual)\b/, "replaces a module"),
  ...found(source, /\.\s*(?:skip|only|todo|skipIf|runIf)\s*[.(`]/, "is left out, or leaves others out"),
  ...found(source, /\.\s*toMatch(?:File)?Snapshot\b/, "compares with whatever came out before"),
];

/** Every rule, by its name. */
export const rules = {
  importLaw,
  vendorLaw,
  purity,
  exits,
  fileLength,
  naming,
  docstrings,
  testManners,
} satisfies Record<string, Rule>;

function found({ path, code }: Source, pattern: RegExp, what: string): string[] {
  return [...code.matchAll(new RegExp(pattern, "g"))].map(({ index }) => {
    const line = code.slice(0, index).split("\n").length;
    return `${path}:${line}: ${what}`;
  });
}
