import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { createCurrentTransport } from "../../../src/api-client/transport.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";

const never = new AbortController().signal;
const get = { method: "GET", path: "/", headers: {} } as const;

test("a request in flight completes after the options changed", async () => {
  // No answer goes out before both requests are there.
  const answers: (() => void)[] = [];
  let arrived = () => {};
  const firstArrival = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const server = createServer((_, response) => {
    arrived();
    answers.push(() => void response.end("{}"));
    if (answers.length === 2) for (const answer of answers) answer();
  });
  const baseUrl = `http://127.0.0.1:${await listenInTest(server)}`;
  let serverName = "first";
  const transport = createCurrentTransport(() => ({ baseUrl, serverName }));
  onTestFinished(() => transport.close());
  const first = transport.request(get, never);
  await firstArrival;
  serverName = "renewed";
  const second = transport.request(get, never);
  expect(await Promise.all([first, second])).toMatchObject([{ ok: true }, { ok: true }]);
});
