import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { readPageFiles } from "./page-files.ts";

/** A file that the page is made of. */
export interface Asset {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  /** Quoted, as the header has it. */
  readonly etag: string;
}

const CONTENT_TYPES_BY_EXTENSION: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The page itself. */
export const PAGE = "index.html";

/** What draws the charts, as its package brings it. */
const CHART_LIBRARY_FILES: Readonly<Record<string, string>> = {
  "uPlot.js": "uplot/dist/uPlot.iife.min.js",
  "uPlot.css": "uplot/dist/uPlot.min.css",
};

/** Everything that the page is made of, by name. Rejects where the package is not whole. */
export async function loadAssets(): Promise<ReadonlyMap<string, Asset>> {
  const [files, charts] = await Promise.all([readPageFiles(), readLibraries()]);
  const texts = new Map([...files, ...charts]);
  const page = texts.get(PAGE) ?? "";
  texts.set(PAGE, page.replace("<!-- modules -->", preloadLinks([...files.keys()])));
  return new Map(await Promise.all([...texts].map(async ([name, text]) => [name, await toAsset(name, text)] as const)));
}

const readLibraries = (): Promise<readonly (readonly [string, string])[]> =>
  Promise.all(
    Object.entries(CHART_LIBRARY_FILES).map(
      async ([name, path]) => [name, await readFile(new URL(import.meta.resolve(path)), "utf8")] as const,
    ),
  );

/** Modules are asked for all at once, instead of as one finds the next. */
const preloadLinks = (names: readonly string[]): string =>
  names
    .filter((name) => name.endsWith(".js"))
    .map((name) => `<link rel="modulepreload" href="page/${name}">`)
    .join("\n");

async function toAsset(name: string, text: string): Promise<Asset> {
  const bytes = Buffer.from(text, "utf8");
  return {
    contentType: CONTENT_TYPES_BY_EXTENSION[extname(name)]!,
    bytes,
    gzipped: await promisify(gzip)(bytes),
    etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
  };
}
