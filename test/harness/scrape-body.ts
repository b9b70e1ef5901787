import type { Scrape } from "../../src/web/scrape/metrics-endpoint.ts";

/** Returns the body of a scrape. Its chunks may share memory, so each is copied before the next is taken. */
export const bodyOf = ({ chunks }: Pick<Scrape, "chunks">): Buffer =>
  Buffer.concat(Array.from(chunks, (chunk) => Buffer.from(chunk)));
