import { connect } from "node:net";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Random } from "../../../src/base/random.ts";
import { ok } from "../../../src/base/result.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import type { Clock, Log } from "../../../src/model/ports.ts";
import { createEventLog } from "../../../src/web/api/event-log.ts";
import { createHistory } from "../../../src/web/api/history.ts";
import { nodesView, nodeView } from "../../../src/web/api/node-views.ts";
import { operatorCommandTable } from "../../../src/web/api/operator-command-routes.ts";
import { budgetView, type StatusSnapshot, statusView } from "../../../src/web/api/status-views.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import { startWebServer, type WebServer } from "../../../src/web/http/server.ts";
import { MetricsEndpoint } from "../../../src/web/scrape/metrics-endpoint.ts";
import {
  fixedKey,
  startVirtualDaemon,
  statusSnapshotOf,
  type VirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";
import { bytesOf, jsonText, mutated, mutatedText, pick, randomBytes, upTo } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";

interface Input {
  /** The bytes of the request, as Latin-1. */
  readonly request: string;
  /** Whether the request is a complete HTTP/1.1 message and must be answered. */
  readonly isFramed: boolean;
}

const TOKEN = "sesame";
const EVENTS = "/api/v1/events";
const paths = [
  ...["/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/page/main.js", "/page/base.css", "/api/v1/status"],
  ...["/api/v1/nodes", "/api/v1/nodes/:id", "/api/v1/decisions", "/api/v1/actions", "/api/v1/policies"],
  ...["/api/v1/budget", "/api/v1/orders", "/api/v1/fleet", "/api/v1/history", EVENTS, "/api/v1/none"],
  ...operatorCommandTable.map(({ path }) => path),
];
const ids = [
  "node_1",
  "act-1",
  "ep-1",
  "",
  ".",
  "..",
  "%2e%2e",
  "%2f",
  "%00",
  "%",
  "%zz",
  "x".repeat(300),
  "é",
  "%ff",
  "%ed%a0%80",
];
const parameters = [
  "page",
  "limit",
  "status",
  "country",
  "region",
  "q",
  "node",
  "policy",
  "until",
  "state",
  "last_event_id",
  "__proto__",
];
const values = [
  ...[
    "",
    "1",
    "0",
    "-1",
    "1e9",
    "1000",
    "999999999",
    "offline",
    "DE",
    "awaiting",
    "2026-03-01T00:00:00Z",
    "x".repeat(300),
  ],
  ...["%", "%00", "%ff", "a&b", "[]", "+", "%2B", "now-1", "9999-12-31T23:59:59.999Z", "2026-02-30T00:00:00Z", "null"],
];
const methods = [
  "GET",
  "GET",
  "GET",
  "HEAD",
  "POST",
  "POST",
  "PUT",
  "DELETE",
  "OPTIONS",
  "PATCH",
  "TRACE",
  "PROPFIND",
  "QUERY",
  "get",
  "X",
];
const headers = [
  `Authorization: Bearer ${TOKEN}`,
  "Authorization: Bearer wrong",
  "Authorization: Basic dTpw",
  "Authorization: ",
  "Accept: application/openmetrics-text; version=1.0.0; q=0.5, */*;q=NaN",
  "Accept: ,;=,;q=,",
  "Accept-Encoding: gzip, *;q=0",
  "Accept-Encoding: ;;,,",
  "Content-Type: application/json",
  "Content-Type: multipart/form-data; boundary=x",
  "Content-Type: ;",
  'If-None-Match: W/"x", *',
  "Origin: https://evil.example.net",
  "Origin: null",
  "Sec-Fetch-Site: cross-site",
  "Last-Event-ID: now-99999999999999999",
  "Last-Event-ID: now-1",
  "X-Forwarded-For: 1.2.3.4, ::1, x",
  "X-Forwarded-Proto: https",
  "Expect: 100-continue",
  "Upgrade: h2c",
  "Range: bytes=0-5",
  "Cookie: a=b",
  "X-Long: ".concat("y".repeat(9_000)),
];
const bodies = [{ reason: "maintenance" }, {}, { reason: "x".repeat(501) }, { reason: "\u0000" }, [], null];
const words = [
  "\r\n",
  "\n",
  "\0",
  " ",
  ":",
  "/",
  "?",
  "HTTP/1.0",
  "HTTP/2.0",
  "Host: b\r\n",
  "Content-Length: 5\r\n",
  "é",
];

function framedRequest(random: Random): string {
  const path = pick(random, paths).replace(":id", pick(random, ids));
  const query = Array.from({ length: upTo(random, 3) }, () => `${pick(random, parameters)}=${pick(random, values)}`);
  const odd = random() < 0.1 ? mutatedText(random, path, ["/", "//", "%2f", "..", ";", "?", "%", "*"]) : path;
  const target = `${odd}${query.length === 0 ? "" : `?${query.join("&")}`}`.replace(/[\s\0]/g, "");
  const method = pick(random, methods);
  const body = method === "GET" || random() < 0.3 ? "" : bodyOf(random);
  const lines = [
    `${method} ${target.startsWith("/") ? target : `/${target}`} HTTP/1.1`,
    "Host: proxywarden.example.net",
    "Connection: close",
    ...Array.from({ length: upTo(random, 4) }, () => pick(random, headers)),
    ...(random() < 0.5 ? [headers[0]!] : []),
    ...(body === "" ? [] : [`Content-Length: ${bytesOf(body).length}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n${bytesOf(body).toString("latin1")}`;
}

const bodyOf = (random: Random): string =>
  random() < 0.1 ? randomBytes(random, 12_000) : jsonText(random, mutated(random, pick(random, bodies)));

/** A clock that advances by a second per case, so that the request rate limit is not reached. */
function steppingClock(): Pick<Clock, "monotonic" | "sleep"> & { step(): void } {
  let now = 0;
  return {
    step: () => {
      now += SECOND_MS;
    },
    monotonic: () => now,
    sleep: (_ms, signal) =>
      new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true })),
  };
}

/** Requests to every route of a web server over real sockets. */
export async function createTarget(): Promise<FuzzTarget<Input>> {
  const daemon = await startVirtualDaemon({
    scenario: { nodes: 30, sessions: 60 },
    config: remediationConfig([rebootOffline()], withoutLimits),
  });
  await daemon.clock.advance(10 * MINUTE_MS);
  const errors: string[] = [];
  const clock = steppingClock();
  const web = await listen(daemon, clock, errors);
  const address = new URL(web.url);
  return {
    generate(random) {
      const request = framedRequest(random);
      if (random() < 0.9) return { request, isFramed: true };
      const bytes = random() < 0.2 ? randomBytes(random, 300) : mutatedText(random, request, words);
      return { request: bytes, isFramed: false };
    },
    async run({ request, isFramed }) {
      clock.step();
      const answer = await exchange(Number(address.port), bytesOf(request), isFramed);
      const status = /^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1];
      assert(answer === "" || status !== undefined, `the answer is not HTTP: ${answer.slice(0, 100)}`);
      assert(!isFramed || status !== undefined, "there is no answer");
      assert(
        status === undefined || Number(status) < 500 || status === "503" || status === "505",
        `the status is ${status}`,
      );
      assert(status === undefined || status === "100" || /nosniff/i.test(answer), "the common headers are missing");
      const error = errors.shift();
      assert(error === undefined, `the log has an error: ${error}`);
    },
    async close() {
      await web.close(SHUTDOWN_BUDGET.webMs);
    },
  };
}

async function listen(
  daemon: VirtualDaemon,
  clock: Pick<Clock, "monotonic" | "sleep">,
  errors: string[],
): Promise<WebServer> {
  const recordError = (fields: object, message: string) => void errors.push(`${message} ${textOf(fields)}`);
  const log: Log = { debug() {}, info() {}, warn() {}, error: recordError };
  return orThrow(
    await startWebServer({
      host: "127.0.0.1",
      port: 0,
      log,
      clock,
      metrics: { inc() {}, set() {} },
      deps: depsOf(daemon, clock),
    }),
  );
}

const textOf = (fields: object): string =>
  Object.values(fields)
    .map((value) => (value instanceof Error ? value.stack : String(value)))
    .join(" ");

function depsOf(daemon: VirtualDaemon, clock: Pick<Clock, "monotonic">): WebDeps {
  const exposition = new MetricsEndpoint({ clock, daemonMetrics: daemon.metrics });
  const statusSnapshot = (): StatusSnapshot => statusSnapshotOf(daemon);
  return {
    scrape: (request) => exposition.scrape(request),
    reload: () => Promise.resolve(ok(undefined)),
    isTrustedProxy: () => true,
    status: () => statusView(statusSnapshot()),
    nodes: (query) => nodesView(statusSnapshot(), query),
    node: (id) => nodeView(statusSnapshot(), id),
    budget: () => budgetView(statusSnapshot()),
    fleet: () => daemon.snapshots.last?.fleet ?? null,
    eventLog: createEventLog(),
    epoch: "now",
    history: createHistory().view,
    remediation: () => daemon.controller!.view,
    execute: daemon.controller!.operatorCommands.execute,
    operators: () => [{ name: "alice", token: fixedKey(TOKEN) }],
  };
}

/** Time after which an incomplete request is abandoned. */
const SILENCE_MS = 30;
/** The longest time to answer a complete request on a busy machine. */
const ANSWER_MS_MAX = 5_000;

/**
 * Sends the bytes and returns everything received until the server closes; of an event stream, only the first chunk.
 */
function exchange(port: number, request: Buffer, isFramed: boolean): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1");
    const timer = setTimeout(() => socket.destroy(), isFramed ? ANSWER_MS_MAX : SILENCE_MS);
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if (chunk.includes("text/event-stream")) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString("latin1"));
    });
    socket.write(request);
  });
}
