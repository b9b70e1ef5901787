import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { acceptsGzip } from "../http/content-negotiation.ts";
import { NO_SUCH_PAGE, sendError } from "../http/response.ts";
import type { Route } from "../http/route.ts";
import { fileOf, joinModules, joinStyles } from "./page-bundle.ts";
import { readPageFiles } from "./page-files.ts";

/** A file of the status page. */
type Asset = Awaited<ReturnType<typeof toAsset>>;

/** Content security policy of the status page, which allows only its own scripts, styles, images and requests. */
const PAGE_CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

const PAGE = "index.html";
const SCRIPT = "main.js";
const STYLES = "styles.css";
const SEPARATE_FILES = ["icon.svg", "uPlot.js"] as const;

/** Files of the library that draws the charts. */
const CHART_LIBRARY_FILES = { "uPlot.js": "uplot/dist/uPlot.iife.min.js", "uPlot.css": "uplot/dist/uPlot.min.css" };

/** Returns the routes of the status page. Its files are loaded by the first request. */
export function pageRoutes(load: typeof loadAssets = loadAssets): readonly Route[] {
  let loading: ReturnType<typeof loadAssets> | null = null;
  const answer = async (name: string, request: FastifyRequest, reply: FastifyReply) => {
    loading ??= load().catch((error: unknown) => {
      // The next request tries again.
      loading = null;
      throw error;
    });
    const asset = (await loading).get(name);
    return asset === undefined ? sendError(request, reply, 404, NO_SUCH_PAGE) : sendAsset(asset, request, reply);
  };
  return [
    { method: "GET", path: "/", handle: (request, reply) => answer(PAGE, request, reply) },
    {
      method: "GET",
      path: "/page/*",
      handle: (request, reply) => answer((request.params as { "*": string })["*"], request, reply),
    },
  ];
}

function sendAsset({ contentType, bytes, gzipped, etag }: Asset, request: FastifyRequest, reply: FastifyReply) {
  reply.headers({
    "content-type": contentType,
    "content-security-policy": PAGE_CONTENT_SECURITY_POLICY,
    // Browsers revalidate it each time, so they use a new version immediately.
    "cache-control": "no-cache",
    vary: "accept-encoding",
    etag,
  });
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  if (!acceptsGzip(request.headers)) return reply.send(bytes);
  return reply.header("content-encoding", "gzip").send(gzipped);
}

/** Loads the files that browsers request, by name. Rejects if one is missing. */
async function loadAssets(): Promise<ReadonlyMap<string, Asset>> {
  const files = new Map(await readPageFiles());
  for (const [name, path] of Object.entries(CHART_LIBRARY_FILES)) {
    files.set(name, await readFile(new URL(import.meta.resolve(path)), "utf8"));
  }
  const { html, css } = joinStyles(fileOf(files, PAGE), files, STYLES);
  const texts = new Map([
    [PAGE, html],
    [STYLES, css],
    [SCRIPT, joinModules(files, SCRIPT)],
    ...SEPARATE_FILES.map((name) => [name, fileOf(files, name)] as const),
  ]);
  return new Map(await Promise.all([...texts].map(async ([name, text]) => [name, await toAsset(name, text)] as const)));
}

async function toAsset(name: string, text: string) {
  const bytes = Buffer.from(text, "utf8");
  return {
    contentType: CONTENT_TYPES[extname(name)]!,
    bytes,
    gzipped: await promisify(gzip)(bytes),
    etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
  };
}
