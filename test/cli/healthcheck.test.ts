import { createServer } from "node:http";
import { expect, test } from "vitest";
import { listenInTest } from "../harness/servers/listening-server.ts";
import { runInProcess } from "./terminal.ts";

/** Starts a server that answers every request with this status. Returns its URL. */
async function startServer(status: number): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end());
  return `http://127.0.0.1:${await listenInTest(server)}`;
}

test.each([
  [404, "it answered 404; set --url to the daemon's address"],
  [400, "it answered 400; a server with TLS needs https://; set --url to the daemon's address"],
  // The daemon limits its clients.
  [429, "it answered 429"],
])("the error for a server that answers %i says what to do", async (status, problem) => {
  const url = await startServer(status);
  expect(await runInProcess("healthcheck", "--url", url)).toEqual({
    code: 1,
    out: "",
    err: `proxywarden: ${url} is not healthy: ${problem}\n`,
  });
});
