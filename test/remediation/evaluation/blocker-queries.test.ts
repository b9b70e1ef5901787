import { describe, expect, onTestFinished, test } from "vitest";
import { createExternalBlockers } from "../../../src/remediation/evaluation/external-blockers.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { neverAnswers, startHttpServer } from "../../api-client/transport/http-server.ts";

async function open(answer: Parameters<typeof startHttpServer>[0]) {
  const server = await startHttpServer(answer);
  const clock = createVirtualClock(0);
  const access = { url: `${server.url}/prefix` };
  const externalBlockers = createExternalBlockers({
    prometheus: access,
    alertmanager: access,
    clock,
    agent: "proxywarden/test",
  });
  onTestFinished(() => externalBlockers.close());
  return { ...server, clock, externalBlockers };
}

const success = (data: unknown, more: object = {}) => JSON.stringify({ status: "success", data, ...more });
const vector = (...result: unknown[]) => ({ resultType: "vector", result });
const sample = (value: string) => ({ metric: {}, value: [1_772_323_200, value] });
const scalar = (value: unknown) => ({ resultType: "scalar", result: [1_772_323_200, value] });

describe("a Prometheus query", () => {
  test("is sent as an encoded instant query", async () => {
    const { externalBlockers, requests } = await open(() => ({ body: success(vector()) }));
    await externalBlockers.blocks({ kind: "query", query: 'ALERTS{alertname="Up & down"} > 0' }, neverAnswers);
    expect(requests).toMatchObject([{ method: "GET" }]);
    expect(requests[0]!.url).toBe("/prefix/api/v1/query?query=ALERTS%7Balertname%3D%22Up%20%26%20down%22%7D%20%3E%200");
  });

  test.each<[string, string, boolean]>([
    ["an empty vector", success(vector()), false],
    ["an empty matrix", success({ resultType: "matrix", result: [] }), false],
    ["a scalar of 0", success(scalar("0")), false],
    ["a scalar of -0", success(scalar("-0")), false],
    ["a vector with an element", success(vector(sample("1"))), true],
    ["a vector with an element of 0, as in an alerting spec", success(vector(sample("0"))), true],
    ["a matrix with a series", success({ resultType: "matrix", result: [{ metric: {}, values: [] }] }), true],
    ["a scalar of 1", success(scalar("1")), true],
    ["a scalar of NaN", success(scalar("NaN")), true],
    ["a scalar of +Inf", success(scalar("+Inf")), true],
    ["an element, with a warning", success(vector(sample("1")), { warnings: ["partial response"] }), true],
    ["nothing, with no warning in the list of them", success(vector(), { warnings: [] }), false],
  ])("that gives %s", async (_, body, blocks) => {
    const { externalBlockers } = await open(() => ({ body }));
    expect(await externalBlockers.blocks({ kind: "query", query: "up" }, neverAnswers)).toEqual({
      ok: true,
      value: blocks,
    });
  });

  test.each<[string, { status?: number; body: string }, RegExp]>([
    ["nothing, with a warning", { body: success(vector(), { warnings: ["a store is down"] }) }, /warned: "a store/],
    [
      "a type that is not a string",
      { body: success({ resultType: { toString: 1 }, result: [] }) },
      /returns a \{"toString":1\}/,
    ],
    [
      "a warning that is not a string",
      { body: success(vector(), { warnings: [{ toString: 1 }] }) },
      /warned: "\{\\"toString\\":1\}"/,
    ],
    [
      "an error that is not a string",
      { status: 400, body: JSON.stringify({ status: "error", errorType: { toString: 1 } }) },
      /^Prometheus answered 400: \{"toString":1\}: missing$/,
    ],
    [
      "an error that is too long for the detail of a hold",
      { status: 400, body: JSON.stringify({ status: "error", errorType: "bad_data", error: "x".repeat(10_000) }) },
      /^.{500}…$/,
    ],
    ["a string", { body: success({ resultType: "string", result: [1, "x"] }) }, /returns a string/],
    ["a scalar without a value", { body: success(scalar(undefined)) }, /no value/],
    ["no result", { body: success({ resultType: "vector" }) }, /without a result/],
    [
      "an error of the query",
      {
        status: 400,
        body: JSON.stringify({ status: "error", errorType: "bad_data", error: "parse error: unclosed (" }),
      },
      /answered 400: bad_data: parse error: unclosed/,
    ],
    [
      "an error with status 200",
      { body: JSON.stringify({ status: "error", errorType: "timeout", error: "x" }) },
      /timeout/,
    ],
    ["503", { status: 503, body: "Service Unavailable" }, /answered 503: "Service Unavailable"/],
    ["a sign-in page", { body: "<html>" }, /not a response from Prometheus: "<html>"/],
    ["JSON of another service", { body: "[]" }, /not a response from Prometheus/],
    ["a redirect", { status: 302, body: "" }, /answered 302/],
  ])("that gives %s is an error", async (_, answer, why) => {
    const { externalBlockers } = await open(() => answer);
    expect(await externalBlockers.blocks({ kind: "query", query: "up" }, neverAnswers)).toEqual({
      ok: false,
      error: expect.stringMatching(why),
    });
  });

  test("fails if it is not answered in time", async () => {
    const { externalBlockers, waitForRequests, clock } = await open(() => null);
    const answer = externalBlockers.blocks({ kind: "query", query: "up" }, neverAnswers);
    await waitForRequests(1);
    await clock.advance(10_000);
    expect(await answer).toEqual({ ok: false, error: "Prometheus: no complete response within 10 s" });
  });
});

describe("alerts of Alertmanager", () => {
  test("are queried with every matcher, without silenced and inhibited ones", async () => {
    const { externalBlockers, requests } = await open(() => ({ body: "[]" }));
    await externalBlockers.blocks({ kind: "alerts", matchers: ['severity="critical"', "region=~eu-.+"] }, neverAnswers);
    const url = new URL(requests[0]!.url, "http://x");
    expect(url.pathname).toBe("/prefix/api/v2/alerts");
    expect([...url.searchParams]).toEqual([
      ["active", "true"],
      ["silenced", "false"],
      ["inhibited", "false"],
      ["filter", 'severity="critical"'],
      ["filter", "region=~eu-.+"],
    ]);
  });

  test.each([
    ["[]", false],
    ['[{"labels":{"alertname":"Upstream"}}]', true],
  ])("%s: that blocks: %s", async (body, blocks) => {
    const { externalBlockers } = await open(() => ({ body }));
    expect(await externalBlockers.blocks({ kind: "alerts", matchers: [] }, neverAnswers)).toEqual({
      ok: true,
      value: blocks,
    });
  });

  test.each([
    [400, '"bad matcher format: severity"', /answered 400: .*bad matcher format/],
    [500, "", /answered 500/],
    [200, "{}", /not a response from Alertmanager/],
    [200, "", /not a response from Alertmanager/],
  ])("an answer %i %s is an error", async (status, body, why) => {
    const { externalBlockers } = await open(() => ({ status, body }));
    expect(await externalBlockers.blocks({ kind: "alerts", matchers: [] }, neverAnswers)).toEqual({
      ok: false,
      error: expect.stringMatching(why),
    });
  });
});

test("a query fails if the server is not configured or does not answer", async () => {
  const parts = { clock: createVirtualClock(0), agent: "proxywarden/test" };
  const none = createExternalBlockers({ ...parts, prometheus: null, alertmanager: null });
  expect(await none.blocks({ kind: "query", query: "up" }, neverAnswers)).toEqual({
    ok: false,
    error: "no prometheus.url is configured",
  });
  expect(await none.blocks({ kind: "alerts", matchers: [] }, neverAnswers)).toEqual({
    ok: false,
    error: "no alertmanager.url is configured",
  });
  const unreachable = { url: "http://127.0.0.1:1" };
  const dead = createExternalBlockers({ ...parts, prometheus: unreachable, alertmanager: unreachable });
  onTestFinished(() => dead.close());
  expect(await dead.blocks({ kind: "query", query: "up" }, neverAnswers)).toMatchObject({
    error: expect.stringMatching(/^Prometheus: .*REFUSED/),
  });
  expect(await dead.blocks({ kind: "alerts", matchers: [] }, neverAnswers)).toMatchObject({
    error: expect.stringMatching(/^Alertmanager: .*REFUSED/),
  });
});
