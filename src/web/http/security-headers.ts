import type { ServerResponse } from "node:http";

/** Headers of every response. The status page replaces the content security policy by its own. */
const COMMON_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  // For browsers without frame-ancestors.
  "x-frame-options": "DENY",
};

/** Sets the common and the configured headers on the raw response, because the exposition bypasses Fastify. */
export function setHeaders(response: ServerResponse, configured: Readonly<Record<string, string>>): void {
  response.setHeaders(new Map(Object.entries({ ...COMMON_HEADERS, ...configured })));
}

/** Returns a response as text, for connections on which no request could be parsed. */
export function rawResponse(status: number, phrase: string, line: string): string {
  const body = `${line}\n`;
  const common = Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`);
  const own = ["connection: close", "content-type: text/plain; charset=utf-8", `content-length: ${body.length}`];
  return [`HTTP/1.1 ${status} ${phrase}`, ...common, ...own, "", body].join("\r\n");
}
