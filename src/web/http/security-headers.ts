import type { ServerResponse } from "node:http";

/**
 * On every answer. The policy is that of what is no page: a page brings its own, which lets in what it is made of and
 * nothing else.
 */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  // For browsers that know no frame-ancestors.
  "x-frame-options": "DENY",
};

/** Sets them, and those of the web configuration, on the raw response: the exposition is written past Fastify's own. */
export function setHeaders(response: ServerResponse, configured: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(COMMON_HEADERS)) response.setHeader(name, value);
  for (const [name, value] of Object.entries(configured)) response.setHeader(name, value);
}

/** A whole answer for a connection that was never read as HTTP, or can't be any more. It is the last one. */
export function rawResponse(status: number, phrase: string, line: string, headers: readonly string[] = []): string {
  const body = `${line}\n`;
  const common = Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`);
  const own = ["connection: close", "content-type: text/plain; charset=utf-8", `content-length: ${body.length}`];
  return [`HTTP/1.1 ${status} ${phrase}`, ...common, ...own, ...headers, "", body].join("\r\n");
}
