import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { TransportResponse } from "../model/ports.ts";

/** What the transport asks for and takes: walks of a million sessions are hundreds of megabytes of JSON. */
export const ACCEPTED_ENCODING = "gzip";

const gunzipAsync = promisify(gunzip);

/**
 * The response with a gzip body decompressed, or null where that is larger than `bytesMax`. A body in another encoding, or
 * one that can't be decompressed, stays as it is, with its Content-Encoding header: {@link encodingProblem} explains it.
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

/** Why the encoding of a body keeps it from being read; null: it doesn't. */
export function encodingProblem({ headers, body }: TransportResponse): string | null {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === ACCEPTED_ENCODING || encoding === "x-gzip") return "the body is not the gzip that its header says";
  if (encoding !== "" && encoding !== "identity") {
    return `the body is compressed with ${JSON.stringify(encoding)}, which was not asked for`;
  }
  if (body[0] === 0x1f && body[1] === 0x8b) return "the body is compressed with gzip, and no Content-Encoding says so";
  return null;
}
