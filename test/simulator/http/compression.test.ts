import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { defaultServiceOptions, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import type { Reply } from "../../../src/simulator/http/reply.ts";
import { createService, handleRequest } from "../../../src/simulator/http/service.ts";
import { START, scenarioWith } from "../api-caller.ts";

const authorization = `Bearer ${SIMULATION_KEY}`;

function ask(compression: "off" | "accepted" | "gzip" | "br", accepted?: string): Reply {
  const service = createService({ ...scenarioWith(), service: { ...defaultServiceOptions, compression } }, START);
  const headers = { authorization, ...(accepted === undefined ? {} : { "accept-encoding": accepted }) };
  return handleRequest(service, { method: "GET", path: "/v1/nodes?limit=100", headers }, START);
}

test("bodies are compressed where the client accepts it, or always, as the scenario says", () => {
  const plain = String(ask("off", "gzip").body);
  const encodingOf = (reply: Reply) => reply.headers["content-encoding"] ?? "none";
  expect(encodingOf(ask("off", "gzip"))).toBe("none");
  expect(encodingOf(ask("accepted"))).toBe("none");
  expect(encodingOf(ask("accepted", "br, GZIP"))).toBe("gzip");
  expect(gunzipSync(ask("accepted", "gzip").body).toString()).toBe(plain);
  expect(gunzipSync(ask("gzip").body).toString()).toBe(plain);
  expect(brotliDecompressSync(ask("br").body).toString()).toBe(plain);
});
