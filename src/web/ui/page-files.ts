import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";

/** Folder of the page's files, in a checkout and in the package. */
const PAGE_FOLDER = new URL("./page/", import.meta.url);

const SERVED_FILES = /\.(?:html|css|svg|js)$/;
const SCRIPT_SOURCES = /(?<!\.d)\.ts$/;

/**
 * Returns the page's files by name, as a browser loads them. The TypeScript of a checkout is stripped of types here;
 * the package contains JavaScript.
 */
export async function readPageFiles(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(PAGE_FOLDER, { recursive: true })).sort();
  const served = names.filter((name) => SERVED_FILES.test(name));
  const sources = names.filter((name) => SCRIPT_SOURCES.test(name));
  const texts = (list: readonly string[]) =>
    Promise.all(list.map((name) => readFile(new URL(name, PAGE_FOLDER), "utf8")));
  const [plain, scripts] = await Promise.all([texts(served), texts(sources).then(stripTypes)]);
  return new Map([
    ...served.map((name, index) => [name, plain[index]!] as const),
    ...sources.map((name, index) => [name.replace(SCRIPT_SOURCES, ".js"), scripts[index]!] as const),
  ]);
}

async function stripTypes(sources: readonly string[]): Promise<readonly string[]> {
  if (sources.length === 0) return [];
  const worker = new Worker(new URL("./type-stripper.ts", import.meta.url), {
    workerData: sources,
    // Node warns that stripTypeScriptTypes is experimental.
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const [stripped] = (await once(worker, "message")) as [readonly string[]];
  return stripped.map(withScriptNames);
}

/** Changes imports such as `./grid.ts` to `./grid.js`. */
const withScriptNames = (script: string): string => script.replace(/(\bfrom\s+"\.{1,2}\/[\w./-]+)\.ts"/g, '$1.js"');
