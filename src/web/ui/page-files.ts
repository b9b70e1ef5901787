import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";

/** Where the page's files are: beside this one, in the sources as in the package. */
export const PAGE_FOLDER = new URL("./page/", import.meta.url);

const SERVED_FILES = /\.(?:html|css|svg|js)$/;
const SCRIPT_SOURCES = /(?<!\.d)\.ts$/;

/**
 * The page's files as a browser takes them, by name. In a checkout its scripts are TypeScript, and lose their types here;
 * in the package they have lost them already.
 */
export async function readPageFiles(folder: URL = PAGE_FOLDER): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder, { recursive: true })).sort();
  const served = names.filter((name) => SERVED_FILES.test(name));
  const sources = names.filter((name) => SCRIPT_SOURCES.test(name));
  const texts = (list: readonly string[]) => Promise.all(list.map((name) => readFile(new URL(name, folder), "utf8")));
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
    // Node calls its own parser experimental: whoever starts the daemon need not hear of it.
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const [stripped] = (await once(worker, "message")) as [readonly string[]];
  return stripped.map(withScriptNames);
}

/** What imports `./grid.ts` in the sources imports `./grid.js` in a browser. */
const withScriptNames = (script: string): string =>
  script.replace(/(\b(?:from|import)\s*\(?\s*"\.{1,2}\/[\w./-]+)\.ts"/g, '$1.js"');
