import type { FastifyReply, FastifyRequest } from "fastify";
import { acceptsGzip } from "../http/content-negotiation.ts";
import { NO_SUCH_PAGE, sendError } from "../http/error-response.ts";
import type { Route } from "../http/route.ts";
import { type Asset, loadAssets, PAGE } from "./assets.ts";

/** Content security policy of the status page: only its own scripts and styles, and requests only to this server. */
export const PAGE_CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The routes of the status page and the files that it is made of, which are read when the first of them is asked for. */
export function pageRoutes(load: typeof loadAssets = loadAssets): readonly Route[] {
  let loading: ReturnType<typeof loadAssets> | null = null;
  const assets = () => {
    loading ??= load().catch((error: unknown) => {
      // The next one tries again.
      loading = null;
      throw error;
    });
    return loading;
  };
  const answer = async (name: string, request: FastifyRequest, reply: FastifyReply) => {
    const asset = (await assets()).get(name);
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
  reply
    .type(contentType)
    .header("content-security-policy", PAGE_CONTENT_SECURITY_POLICY)
    // Kept, and asked for again each time: a new version is seen at once, an old one costs no bytes.
    .header("cache-control", "no-cache")
    .header("vary", "accept-encoding")
    .header("etag", etag);
  const known = request.headers["if-none-match"]?.split(",").map((each) => each.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  if (!acceptsGzip(request.headers["accept-encoding"]?.toString())) return reply.send(bytes);
  return reply.header("content-encoding", "gzip").send(gzipped);
}
