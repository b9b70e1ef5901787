import { createServer, type ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { BODY_BYTES_MAX } from "../../../src/api-client/transport.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { get, neverAnswers, transportTo } from "./http-server.ts";

/** Returns a transport to a server that answers requests with `answer`. */
async function transportToServer(answer: (response: ServerResponse) => void): Promise<Transport> {
  const server = createServer((_, response) => answer(response));
  return transportTo(`http://127.0.0.1:${await listenInTest(server)}`);
}

test.each([{}, { "content-length": "300000" }])("a body of many chunks arrives whole (headers %o)", async (headers) => {
  const sent = Buffer.from(Uint32Array.from({ length: 75_000 }, (_, index) => index).buffer);
  const transport = await transportToServer(async (response) => {
    response.writeHead(200, headers);
    for (const [begin, end] of [[0, 1], [1, 90_000], [90_000, 90_001], [90_001]] as const)
      await new Promise((resolve) => void response.write(sent.subarray(begin, end), resolve));
    response.end();
  });
  const outcome = await transport.request(get, neverAnswers);
  expect(outcome.ok && Buffer.compare(outcome.value.body, sent)).toBe(0);
});

test("a body takes memory for what has arrived, whatever Content-Length says", async () => {
  const requests = 20;
  let written = 0;
  const allWritten = Promise.withResolvers<void>();
  const transport = await transportToServer((response) => {
    if (written === requests) return void response.end();
    response.writeHead(200, { "content-length": BODY_BYTES_MAX });
    response.write("{", () => ++written === requests && allWritten.resolve());
  });
  const before = process.memoryUsage().arrayBuffers;
  const canceled = new AbortController();
  const outcomes = Array.from({ length: requests }, () => transport.request(get, canceled.signal));
  await allWritten.promise;
  // While it is answered, what was written before arrives.
  await transport.request(get, canceled.signal);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(BODY_BYTES_MAX);
  canceled.abort();
  await Promise.all(outcomes);
});

test.each(["GET", "POST"] as const)("a 429 to a %s counts although its body breaks off", async (method) => {
  const transport = await transportToServer((response) => {
    response.writeHead(429, { "content-length": "100", "retry-after": "60" });
    response.write("{", () => response.destroy());
  });
  const outcome = await transport.request({ ...get, method }, neverAnswers);
  expect(outcome).toMatchObject({ ok: true, value: { status: 429, headers: { "retry-after": "60" } } });
});

test("a 429 counts although its body does not end before the time limit", async () => {
  const written = Promise.withResolvers<void>();
  const requests: ServerResponse[] = [];
  const transport = await transportToServer((response) => {
    if (requests.push(response) > 1) return void response.end();
    response.writeHead(429, { "content-length": "100" });
    response.write("{", () => written.resolve());
  });
  const timeLimit = new AbortController();
  const rejected = transport.request(get, timeLimit.signal);
  await written.promise;
  // While it is answered, what was written before arrives.
  await transport.request(get, neverAnswers);
  timeLimit.abort();
  expect(await rejected).toMatchObject({ ok: true, value: { status: 429 } });
});
