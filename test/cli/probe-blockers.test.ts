import { describe, expect, test } from "vitest";
import { runCheck } from "../../src/cli/check.ts";
import { startHttpServer } from "../api-client/transport/http-server.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { probe } from "./probed-service.ts";
import { captureOutput } from "./terminal.ts";

test("check --probe reports nothing about a service when the process is asked to stop while it waits", async () => {
  const { url } = await startHttpServer(() => null);
  const service = `service: {base_url: "${url}", api_key: sesame, usage_scale: ratio}\nstate: {path: state}\n`;
  const config = createTempFolder().write("proxywarden.yaml", service);
  const stop = new AbortController();
  const stopped = captureOutput((context) => {
    const err = { write: (text: string) => (text.startsWith("asking ") ? stop.abort() : context.err.write(text)) };
    return runCheck({ config, probe: true, output: "text" }, { ...context, err, stop: stop.signal });
  });
  expect(await stopped).toMatchObject({ code: 1, out: "", err: expect.stringMatching(/proxywarden: stopped\n$/) });
});

describe("check --probe with blocked_by", () => {
  /** Runs a probe with a policy that these queries block, on a Prometheus that knows only valid ones. */
  async function probeQueries(...queries: readonly string[]) {
    const prometheus = await startHttpServer(({ url }) => {
      const query = new URL(url, "http://h").searchParams.get("query")!;
      if (query.includes("=")) {
        return { status: 400, body: JSON.stringify({ status: "error", errorType: "bad_data", error: "parse error" }) };
      }
      const result = query === "up" ? [{ metric: {}, value: [0, "1"] }] : [];
      return { body: JSON.stringify({ status: "success", data: { resultType: "vector", result } }) };
    });
    const blocked_by = queries.map((query) => ({ query }));
    const policy = {
      name: "p",
      when: "node.status == 'offline'",
      for: "15m",
      steps: [{ action: "reboot" }],
      blocked_by,
    };
    const file = createTempFolder().write("p.yaml", JSON.stringify({ policies: [policy] }));
    return probe({ config: { policies: [file], prometheus: { url: prometheus.url } } });
  }

  test("each query is run once, and those that fail are a problem", async () => {
    const { code, findings } = await probeQueries("up", "down\n  or down\n", "up = 0");
    expect(findings.blocked_by).toEqual({
      value: false,
      certain: true,
      problem: true,
      text: "policy p: the query up: blocks now; policy p: the query down or down: does not block now; policy p: the query up = 0: fails: Prometheus answered 400: bad_data: parse error; an entry of blocked_by that fails holds its policy",
    });
    expect(code).toBe(1);
  });

  test("queries that succeed are no problem", async () => {
    const { code, findings } = await probeQueries("down");
    expect(findings.blocked_by).toMatchObject({ value: true, problem: false });
    expect(code).toBe(0);
  });

  test("policies without queries have no finding", async () => {
    expect((await probe()).findings.blocked_by).toBeUndefined();
  });
});
