import { onTestFinished } from "vitest";
import { ok } from "../../../src/base/result.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import type { Clock, Log, LogFields, Secret } from "../../../src/model/ports.ts";
import type { Operator } from "../../../src/model/remediation/operator-command.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { createEventLog } from "../../../src/web/api/event-log.ts";
import { createHistory } from "../../../src/web/api/history.ts";
import { nodesView } from "../../../src/web/api/node-views.ts";
import type { Query } from "../../../src/web/api/query.ts";
import type { StatusSnapshot } from "../../../src/web/api/status-views.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import { startWebServer, type WebServer } from "../../../src/web/http/server.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { idleRemediation, recordingCommands } from "../api/remediation-view-fixture.ts";

/** An exposition in two chunks. */
export const metricsBody = Buffer.from("proxywarden_trusted 1\n");

/** The status of a daemon that was just started. */
export const initialStatus = { version: "0.1.0", now: "2026-11-22T00:00:00.000Z" };

/** Dependencies of a server whose daemon is healthy. */
export const defaultDeps: WebDeps = {
  scrape: () =>
    Promise.resolve({
      contentType: "text/plain; version=0.0.4",
      contentLength: metricsBody.length,
      chunks: [metricsBody.subarray(0, 5), metricsBody.subarray(5)],
      revoked: new AbortController().signal,
      release() {},
    }),
  reload: () => Promise.resolve(ok(undefined)),
  isTrustedProxy: () => false,
  status: () => initialStatus,
  nodes: () => nodesOf(null, {}),
  node: (id) => (id === "node_1" ? { id } : null),
  budget: () => ({ month: 1 }),
  fleet: () => null,
  eventLog: createEventLog(),
  epoch: "now",
  history: () => createHistory().view(),
  remediation: () => idleRemediation,
  execute: recordingCommands([]),
  operators: () => [],
};

const nodesOf = (fleet: Fleet | null, query: Query) =>
  nodesView({ snapshot: fleet && { fleet }, monotonic: 0 } as StatusSnapshot, query);

/** Returns all dependencies of a server. Its nodes are those of the fleet, unless they are given. */
export const completeDeps = (deps: Partial<WebDeps> = {}): WebDeps => ({
  ...defaultDeps,
  nodes: (query) => nodesOf(deps.fleet?.() ?? null, query),
  ...deps,
});

/** Returns one operator with a token; null: no operators. */
export const adminOperators = (token: Secret | null): readonly Operator[] =>
  token === null ? [] : [{ name: "admin", token }];

/** A stopped clock: a sleep ends only when it is aborted. */
export const stoppedClock: Pick<Clock, "sleep" | "monotonic"> = {
  monotonic: () => 0,
  sleep: (_ms, signal) => new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true })),
};

/** Messages logged by the current test, and their fields. */
export const loggedMessages: string[] = [];
export const loggedFields: LogFields[] = [];
const recordLog = (fields: LogFields, message: string) => {
  loggedMessages.push(message);
  loggedFields.push(fields);
};

/** Records messages and fields. */
export const log: Log = { debug: recordLog, info: recordLog, warn: recordLog, error: recordLog };

export const ignoredMetrics = { inc() {}, set() {} };

/** Starts a server on a free port, closed when the test ends. */
export async function startTestServer(deps: Partial<WebDeps> = {}, clock = stoppedClock): Promise<WebServer> {
  const web = orThrow(
    await startWebServer({
      host: "127.0.0.1",
      port: 0,
      deps: completeDeps(deps),
      log,
      clock,
      metrics: ignoredMetrics,
    }),
  );
  onTestFinished(async () => {
    await web.close(SHUTDOWN_BUDGET.webMs);
    loggedMessages.length = 0;
    loggedFields.length = 0;
  });
  return web;
}

/** Sends a request over a new connection. */
export async function fetchFrom(web: WebServer, path: string, init: RequestInit = {}) {
  const response = await fetch(web.url + path, { ...init, headers: { connection: "close", ...init.headers } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
