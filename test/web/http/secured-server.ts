import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { Result } from "../../../src/base/result.ts";
import { formatProblem } from "../../../src/config/diagnostics/problem.ts";
import { readWebFile } from "../../../src/config/web-file.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import type { Clock } from "../../../src/model/ports.ts";
import { readTextFile } from "../../../src/platform/text-file.ts";
import type { BcryptMatches } from "../../../src/web/http/auth/bcrypt.ts";
import type { WebDeps } from "../../../src/web/http/route.ts";
import { startWebServer, type WebServer } from "../../../src/web/http/server.ts";
import { type LoadedWebSettings, loadWebSettings } from "../../../src/web/http/web-settings.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { completeDeps, log, loggedFields, loggedMessages } from "./test-server.ts";

/** A clock that a test sets. A sleep ends only when it is aborted. */
interface ManualClock extends Pick<Clock, "monotonic" | "sleep"> {
  nowMs: number;
}

/** Values of metrics by name and labels. */
type RecordedMetrics = Record<string, number>;

/** A server with a web configuration, closed when the test ends. */
interface TestServer {
  readonly web: WebServer;
  readonly folder: TempFolder;
  readonly clock: ManualClock;
  readonly metrics: RecordedMetrics;
}

interface TestServerDeps {
  readonly deps?: Partial<WebDeps>;
  readonly bcryptMatches?: BcryptMatches;
}

/** Loads the file `web.yml` in a folder. */
export function settingsIn(folder: TempFolder): Result<LoadedWebSettings, readonly string[]> {
  const read = readWebFile(folder.pathOf("web.yml"), {}, readTextFile);
  const loaded = read.ok ? loadWebSettings(read.value) : read;
  return loaded.ok ? loaded : { ok: false, error: loaded.error.map(formatProblem) };
}

/** Starts a server with `web.yml` and the other files that it names. */
export async function startServerWithFiles(
  files: Readonly<Record<string, string>>,
  parts: TestServerDeps = {},
): Promise<TestServer> {
  const folder = createTempFolder();
  for (const [name, content] of Object.entries(files)) folder.write(name, content);
  const clock: ManualClock = {
    nowMs: 0,
    monotonic: () => clock.nowMs,
    sleep: (_ms, signal) =>
      new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true })),
  };
  const recorded: RecordedMetrics = {};
  const nameOf = (name: string, labels: object) => [name, ...Object.values(labels)].join(" ");
  const metrics = {
    set(name: string, labels: object, value: number) {
      recorded[nameOf(name, labels)] = value;
    },
    inc(name: string, labels: object) {
      recorded[nameOf(name, labels)] = (recorded[nameOf(name, labels)] ?? 0) + 1;
    },
  };
  const started = await startWebServer({
    host: "127.0.0.1",
    port: 0,
    log,
    clock,
    metrics,
    deps: completeDeps(parts.deps),
    settings: orThrow(settingsIn(folder)),
    ...(parts.bcryptMatches === undefined ? {} : { bcryptMatches: parts.bcryptMatches }),
  });
  const web = orThrow(started);
  onTestFinished(async () => {
    await web.close(SHUTDOWN_BUDGET.webMs);
    loggedMessages.length = 0;
    loggedFields.length = 0;
  });
  return { web, folder, clock, metrics: recorded };
}

interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends a request over a new connection. Rejects if there is no response. */
export function sendHttpRequest(
  web: Pick<WebServer, "url">,
  path: string,
  options: RequestOptions = {},
  body = "",
): Promise<HttpResponse> {
  const url = new URL(web.url + path);
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    request(url, { agent: false, ...options }, (response) => {
      text(response).then(
        (read) => resolve({ status: response.statusCode!, headers: response.headers, text: read }),
        reject,
      );
    })
      .on("error", reject)
      .end(body);
  });
}

/** Returns the header of basic auth. */
export const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
});
