import { describe, expect, test } from "vitest";
import { type Call, readHourlyCall, readNodeCall, readStatsCall } from "../../src/api-client/endpoints.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { fail } from "../../src/base/result.ts";
import { type FaultKind, LIMITER_KINDS, type ServiceOptions } from "../../src/config/schema/scenario.ts";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { Transport, TransportRequest } from "../../src/model/ports.ts";
import { rateLimitedCount } from "../../src/simulator/http/service.ts";
import { fixedKey, START_MS } from "../harness/daemon/virtual-daemon.ts";
import { type ClientSetup, createClientSetup } from "./client-fixture.ts";

/** Errors come as values: the kind, and how often the service was asked. */
const kinds: readonly [FaultKind, string, number][] = [
  [{ kind: "status", status: 503 }, "server_error", 3],
  [{ kind: "hang" }, "timeout", 3],
  [{ kind: "reset" }, "reset", 3],
  [{ kind: "truncate" }, "reset", 3],
  [{ kind: "slow_drip", bytesPerSecond: 10 }, "timeout", 3],
  [{ kind: "lost_reply" }, "reset", 3],
  [{ kind: "bad_json" }, "not_json", 1],
  [{ kind: "html" }, "not_json", 1],
  [{ kind: "huge_body", bytes: 20 * 2 ** 20 }, "too_large", 1],
  [{ kind: "redirect", location: "http://127.0.0.1:1/elsewhere" }, "redirected", 1],
  [{ kind: "status", status: 400 }, "client_error", 1],
  [{ kind: "status", status: 404 }, "not_found", 1],
  [{ kind: "status", status: 429, retryAfter: "7" }, "rate_limited", 1],
];

describe("a service that fails", () => {
  test.each(kinds)("%o is the error %s after %i calls", async (fault, kind, times) => {
    const { get, calls } = createClientSetup({ fault });
    const answer = await get();
    expect(answer.ok ? "an answer" : answer.error.kind).toBe(kind);
    expect(calls).toHaveLength(times);
  });

  test("quotes the beginning of an HTML page, with its content type", async () => {
    const { get } = createClientSetup({ fault: { kind: "html" } });
    const answer = await get();
    expect(answer.ok ? "" : answer.error.message).toMatch(/expected JSON, got text\/html.* beginning with "<!/i);
  });

  test.each<[ClientSetup, string]>([
    [{ fault: { kind: "bad_json" } }, "the JSON is cut off after"],
    [{ service: { compression: "br" } }, 'the body is compressed with "br", which was not requested'],
  ])("%o is reported with the problem of the body", async (setting, problem) => {
    const answer = await createClientSetup(setting).get();
    expect(answer).toMatchObject({ ok: false, error: { kind: "not_json", message: expect.stringContaining(problem) } });
  });

  test("a redirect is reported with its target and advice, and the key is not sent to it", async () => {
    const sent: TransportRequest[] = [];
    const { get } = createClientSetup({
      fault: { kind: "redirect", location: "http://127.0.0.1:1/elsewhere" },
      wrap: (transport) => ({
        ...transport,
        request(request, signal) {
          sent.push(request);
          return transport.request(request, signal);
        },
      }),
    });
    const answer = await get();
    expect(answer.ok ? "" : answer.error.message).toContain(
      '"http://127.0.0.1:1/elsewhere": redirects are not followed',
    );
    expect(sent.map(({ path }) => path)).toEqual([readStatsCall.path]);
  });

  test("retries overcome a temporary fault", async () => {
    const { get, service, clock, client } = createClientSetup({ fault: { kind: "status", status: 500 } });
    const answer = client.get(readStatsCall, "walk", new AbortController().signal);
    await clock.advance(300);
    service.setFaults([]);
    await clock.advance(60_000);
    expect((await answer).ok).toBe(true);
    expect((await get()).ok).toBe(true);
  });

  test("calls of an endpoint whose retries have failed are not retried until one of them succeeds", async () => {
    const { service, clock, client, calls } = createClientSetup({ fault: { kind: "status", status: 503 } });
    const attemptsOf = async (call: Call) => {
      const before = calls.length;
      const answer = client.get(call, "walk", new AbortController().signal);
      await clock.advance(30_000);
      return { ok: (await answer).ok, attempts: calls.length - before };
    };
    expect(await attemptsOf(readStatsCall)).toEqual({ ok: false, attempts: 3 });
    expect(await attemptsOf(readStatsCall)).toEqual({ ok: false, attempts: 1 });
    expect(await attemptsOf(readHourlyCall)).toEqual({ ok: false, attempts: 3 });
    service.setFaults([]);
    expect(await attemptsOf(readStatsCall)).toEqual({ ok: true, attempts: 1 });
    service.setFaults([{ afterMs: 0, forMs: 3_600_000, fault: { kind: "status", status: 503 } }]);
    expect(await attemptsOf(readStatsCall)).toEqual({ ok: false, attempts: 3 });
  });

  test("no error contains the key", async () => {
    for (const [fault] of kinds) {
      const { get } = createClientSetup({ fault, secret: fixedKey("the-secret-key-itself") });
      const answer = await get();
      expect(JSON.stringify(answer)).not.toContain("the-secret-key-itself");
    }
  });
});

/** Removes Retry-After from every response, so that only the body of a 429 states the wait. */
const withoutRetryAfter = (transport: Transport): Transport => ({
  ...transport,
  async request(request, signal) {
    const sent = await transport.request(request, signal);
    if (!sent.ok) return sent;
    const { "retry-after": _, ...headers } = sent.value.headers;
    return { ok: true, value: { ...sent.value, headers } };
  },
});

describe("429", () => {
  test.each([
    ["Retry-After 30", "30", (transport: Transport) => transport],
    ["an HTTP-date in Retry-After", new Date(START_MS + 30_000).toUTCString(), (transport: Transport) => transport],
    ["retry_after 30 in the body", "30", withoutRetryAfter],
  ])("%s is waited for before the next call", async (_, retryAfter, wrap) => {
    const { service, clock, client, calls } = createClientSetup({
      fault: { kind: "status", status: 429, retryAfter },
      wrap,
    });
    const first = client.get(readStatsCall, "walk", new AbortController().signal);
    await clock.advance(1_000);
    expect((await first).ok).toBe(false);
    service.setFaults([]);
    const second = client.get(readStatsCall, "walk", new AbortController().signal);
    await clock.advance(27_000);
    expect(calls).toHaveLength(1);
    await clock.advance(10_000);
    expect((await second).ok).toBe(true);
    expect(calls).toHaveLength(2);
  });
});

describe("every variant of the service", () => {
  const choices: Partial<ServiceOptions>[] = [
    ...LIMITER_KINDS.flatMap((limiter) =>
      (["category", "plan", "off"] as const).map((rateLimitHeaders) => ({ limiter, rateLimitHeaders })),
    ),
    ...(["code", "nested", "text", "empty"] as const).map((errorBody) => ({ errorBody })),
    { plan: "starter" },
    { plan: "enterprise" },
  ];
  test.each(choices)("a hundred calls under %o get no 429, and a missing node is not_found", async (options) => {
    const { clock, client, service, get } = createClientSetup({ service: options });
    const answers = Array.from({ length: 100 }, () => client.get(readStatsCall, "walk", new AbortController().signal));
    await clock.advance(600_000);
    const failed = (await Promise.all(answers)).filter((answer) => !answer.ok);
    expect(rateLimitedCount(service)).toBe(0);
    expect(failed).toEqual([]);
    const missing = await get(readNodeCall("node_that_is_not"));
    expect(missing.ok ? "" : missing.error.kind).toBe("not_found");
  });
});

test("every call is counted in the store before it is sent", async () => {
  const counted: number[] = [];
  const { get, store } = createClientSetup({
    fault: { kind: "hang" },
    wrap: (transport) => ({
      ...transport,
      request(request, signal) {
        counted.push(store.calls.since("2026-03-01"));
        return transport.request(request, signal);
      },
    }),
  });
  await get();
  expect(counted).toEqual([1, 2, 3]);
});

test.each([
  { kind: "unreachable", message: "no connection" },
  { kind: "aborted", message: "canceled", unsent: true },
] as const)(
  "a call that the service can't have received, because it is $kind, does not count in the month",
  async (error) => {
    const wrap = (transport: Transport): Transport => ({ ...transport, request: async () => fail(error) });
    const { get, rateLimiter } = createClientSetup({ wrap });
    expect(await get()).toMatchObject({ ok: false });
    expect(rateLimiter.monthUsed()).toBe(0);
  },
);

test("metrics show the limit that responses state, and count each 429", async () => {
  const metrics = createDaemonMetrics({ process: false });
  const fault = { kind: "status", status: 429, retryAfter: "7" } as const;
  await createClientSetup({ metrics }).get();
  await createClientSetup({ metrics, fault }).get();
  const page = await metrics.render("text");
  const linesOf = (name: string) => page.split("\n").filter((line) => line.startsWith(`${name}{`));
  expect(linesOf("proxywarden_ratelimit_limit")).toEqual([
    'proxywarden_ratelimit_limit{category="session_monitoring"} 500',
  ]);
  expect(linesOf("proxywarden_ratelimit_remaining")).toHaveLength(1);
  expect(linesOf("proxywarden_ratelimit_reset_timestamp_seconds")).toHaveLength(1);
  expect(linesOf("proxywarden_ratelimit_exceeded_total")).toContain(
    'proxywarden_ratelimit_exceeded_total{category="session_monitoring"} 1',
  );
});

test("the service's clock is known from its Date headers to within a second", async () => {
  const { get, client } = createClientSetup({ fault: { kind: "clock_skew", skewMs: 90_000 } });
  await get();
  expect(Math.abs(client.clockSkewMs()! - 90_000)).toBeLessThanOrEqual(1_000);
});

test("setting our wall clock does not change the service's time, and shows in the skew immediately", async () => {
  const { get, client, clock } = createClientSetup();
  expect(client.serviceTime(clock.monotonic())).toBeNull();
  await get();
  const at = clock.monotonic();
  const [time, skew] = [client.serviceTime(at)!, client.clockSkewMs()!];
  clock.stepWallClock(3_600_000);
  expect(client.serviceTime(at)).toBe(time);
  expect(client.clockSkewMs()).toBe(skew - 3_600_000);
  await get();
  expect(Math.abs(client.serviceTime(at)! - time)).toBeLessThanOrEqual(1_000);
  expect(Math.abs(client.clockSkewMs()! - (skew - 3_600_000))).toBeLessThanOrEqual(1_000);
});

test("the Date of an error without the service's headers does not set the service's clock", async () => {
  const { service, client, get, clock } = createClientSetup();
  await get();
  const before = client.clockSkewMs()!;
  const wrongDate = {
    afterMs: 0,
    forMs: Number.POSITIVE_INFINITY,
    fault: { kind: "wrong_date", offsetMs: HOUR_MS },
  } as const;
  const gateway = { ...wrongDate, fault: { kind: "status", status: 503, bare: true } } as const;
  service.setFaults([wrongDate, gateway]);
  for (let calls = 0; calls < 3; calls++) await get();
  expect(client.serviceTime(clock.monotonic())! - START_MS - clock.monotonic()).toBeLessThan(MINUTE_MS);
  expect(client.clockSkewMs()).toBe(before);
  service.setFaults([wrongDate]);
  for (let calls = 0; calls < 2; calls++) await get();
  expect(Math.abs(client.clockSkewMs()! - before - HOUR_MS)).toBeLessThan(2_000);
});

test("a response shows the service as it was when the request was sent, at the earliest", async () => {
  const { client, clock } = createClientSetup({ fault: { kind: "slow_drip", bytesPerSecond: 100 } });
  let sentAt = Number.NaN;
  const read = client.get(readStatsCall, "walk", new AbortController().signal, () => {
    sentAt = clock.monotonic();
  });
  await clock.advance(MINUTE_MS);
  const response = await read;
  expect(response.ok && response.value.at).toBe(sentAt);
});

/** Size of the smallest body that is parsed in a turn of the event loop of its own. */
const LARGE_BODY_BYTES = 65_537;

test.each([
  ["frees the buffer of a large body once it has been parsed", LARGE_BODY_BYTES, 0],
  ["does not free a buffer that small bodies may share", 65_536, 65_536],
])("%s", async (_, bytes, bytesAfter) => {
  const body = new Uint8Array(bytes).fill(" ".charCodeAt(0));
  body[0] = "1".charCodeAt(0);
  const { buffer } = body;
  const { get } = createClientSetup({
    wrap: (transport) => ({
      ...transport,
      request: () => Promise.resolve({ ok: true, value: { status: 200, headers: {}, body } }),
    }),
  });
  expect(await get()).toMatchObject({ ok: true, value: { json: 1 } });
  expect(buffer.byteLength).toBe(bytesAfter);
});

test("the wait of a large response for its turn to be parsed does not count as latency", async () => {
  const body = new Uint8Array(LARGE_BODY_BYTES).fill("1".charCodeAt(0), 0, 1).fill(" ".charCodeAt(0), 1);
  let [arrivedAt, isParsed] = [Number.NaN, true];
  const { clock, get } = createClientSetup({
    wrap: (transport) => ({
      ...transport,
      request() {
        arrivedAt = clock.monotonic();
        setImmediate(passSecond);
        return Promise.resolve({ ok: true, value: { status: 200, headers: {}, body } });
      },
    }),
  });
  const monotonic = clock.monotonic;
  const passSecond = () => {
    isParsed = body.byteLength === 0;
    clock.monotonic = () => monotonic() + SECOND_MS;
  };
  const response = await get();
  expect(isParsed).toBe(false);
  expect(response.ok && response.value.receivedAt).toBe(arrivedAt);
});
