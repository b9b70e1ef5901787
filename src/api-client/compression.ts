import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { TransportResponse } from "../model/ports.ts";

/** Accepted encoding of bodies: a walk of a million sessions is hundreds of megabytes of JSON. */
export const ACCEPTED_ENCODING = "gzip";

const gunzipAsync = promisify(gunzip);

/**
 * Decompresses a gzip body; null if the result is larger than `bytesMax`. A body in another encoding, or one that can't be
 * decompressed, is returned as it is with its Content-Encoding header, which {@link encodingProblem} explains.
 */
export async function decompress(response: TransportResponse, bytesMax: number): Promise<TransportResponse | null> {
  const { "content-encoding": encoding, "content-length": _, ...headers } = response.headers;
  if (!/^\s*(?:x-)?gzip\s*$/i.test(encoding ?? "") || response.body.byteLength === 0) return response;
  try {
    return { ...response, headers, body: await gunzipAsync(response.body, { maxOutputLength: bytesMax }) };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? null : response;
  }
}

/** Returns why the encoding of a body makes it unreadable; null: it does not. */
export function encodingProblem({ headers, body }: TransportResponse): string | null {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === ACCEPTED_ENCODING || encoding === "x-gzip")
    return "the body is not gzip although its Content-Encoding says so";
  if (encoding !== "" && encoding !== "identity") {
    return `the body is compressed with ${JSON.stringify(encoding)}, which was not requested`;
  }
  if (body[0] === 0x1f && body[1] === 0x8b) return "the body is compressed with gzip, but has no Content-Encoding";
  return null;
}
