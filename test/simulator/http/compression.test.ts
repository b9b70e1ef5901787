import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { defaultServiceOptions, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import type { Reply } from "../../../src/simulator/http/reply.ts";
import { createService, handleRequest } from "../../../src/simulator/http/service.ts";
import { START, scenarioWith } from "../api-caller.ts";

const authorization = `Bearer ${SIMULATION_KEY}`;

function requestNodes(compression: "off" | "accepted" | "gzip" | "br", accepted?: string): Reply {
  const service = createService({ ...scenarioWith(), service: { ...defaultServiceOptions, compression } }, START);
  const headers = { authorization, ...(accepted === undefined ? {} : { "accept-encoding": accepted }) };
  return handleRequest(service, { method: "GET", path: "/v1/nodes?limit=100", headers }, START);
}

test("compresses bodies if the client accepts it, or always, depending on the option", () => {
  const plain = String(requestNodes("off", "gzip").body);
  const encodingOf = (reply: Reply) => reply.headers["content-encoding"] ?? "none";
  expect(encodingOf(requestNodes("off", "gzip"))).toBe("none");
  expect(encodingOf(requestNodes("accepted"))).toBe("none");
  expect(encodingOf(requestNodes("accepted", "br, GZIP"))).toBe("gzip");
  expect(gunzipSync(requestNodes("accepted", "gzip").body).toString()).toBe(plain);
  expect(gunzipSync(requestNodes("gzip").body).toString()).toBe(plain);
  expect(brotliDecompressSync(requestNodes("br").body).toString()).toBe(plain);
});
