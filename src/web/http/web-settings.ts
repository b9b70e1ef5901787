import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { ReadFile } from "../../config/checks.ts";
import { type ConfigProblem, formatProblem, locateProblem } from "../../config/diagnostics/problem.ts";
import { readWebFile, type WebFile } from "../../config/web-file.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { fileStampAt } from "../../platform/secret-file.ts";
import { readTextFile } from "../../platform/text-file.ts";
import { loadTlsSettings, type TlsSettings } from "./tls/tls-settings.ts";

/** Settings of the web server: TLS, headers, users and the rate limit. */
export interface WebSettings {
  /** Null means plain HTTP. */
  readonly tls: TlsSettings | null;
  /** Headers of every response to a well-formed request, added to the common ones or replacing them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bcrypt hashes by user. Empty means no authentication. */
  readonly users: ReadonlyMap<string, string>;
  /** Limit on the requests of all clients together. Null means no limit. */
  readonly rate: { readonly intervalMs: DurationMs; readonly burst: number } | null;
}

/** Settings and the files they were read from. */
export interface LoadedWebSettings {
  readonly settings: WebSettings;
  /** Null if there is no web configuration file. */
  readonly webFile: WebFile | null;
  /** Every file that was read, and its stamp, which changes with the file. */
  readonly fileStamps: ReadonlyMap<string, string>;
}

/** Plain HTTP without authentication. */
export const OPEN_WEB_SETTINGS: LoadedWebSettings = {
  settings: { tls: null, headers: {}, users: new Map(), rate: null },
  webFile: null,
  fileStamps: new Map(),
};

/**
 * Loads the settings of a web configuration file, and the certificates and keys that it names. Null means plain HTTP
 * without authentication. The error lists every problem of the file, or the first problem of the certificates and keys.
 */
export function loadWebSettings(webFile: WebFile | null): Result<LoadedWebSettings, readonly ConfigProblem[]> {
  if (webFile === null) return ok(OPEN_WEB_SETTINGS);
  const fileStamps = new Map<string, string>();
  const read = readWebSettings(webFile, fileStamps);
  return read.ok ? ok({ settings: read.value, webFile, fileStamps }) : read;
}

/** Reads the files and records the stamp of each in `stamps`, even if it fails. */
function readWebSettings(webFile: WebFile, stamps: Map<string, string>): Result<WebSettings, readonly ConfigProblem[]> {
  // The stamp is taken before the file is read, so that no change is missed. A missing file has a stamp too.
  const readTracked: ReadFile = (path) => {
    if (!stamps.has(path)) stamps.set(path, fileStampAt(path));
    return readTextFile(path);
  };
  const read = readWebFile(webFile.file, webFile.env, readTracked);
  if (!read.ok) return read;
  const { config, keys } = read.value;
  const { tls_server_config: tlsConfig, http_server_config: http, rate_limit: rate } = config;
  const tls = tlsConfig === undefined ? ok(null) : loadTlsSettings(tlsConfig, readTracked);
  if (!tls.ok) return fail([locateProblem(keys, tls.error)]);
  return ok({
    tls: tls.value,
    headers: Object.fromEntries(Object.entries(http.headers).filter(([, value]) => value !== "")),
    users: new Map(Object.entries(config.basic_auth_users)),
    rate: rate === undefined || rate.interval === 0 ? null : { intervalMs: rate.interval, burst: rate.burst },
  });
}

/** A check costs one system call per file. A renewed certificate is used within this time. */
const FILE_CHECK_INTERVAL_MS: DurationMs = SECOND_MS;

/** Creates settings that follow their files. If a file becomes invalid, the previous settings stay. */
export function watchWebSettings(
  first: LoadedWebSettings,
  deps: {
    readonly clock: Pick<Clock, "monotonic">;
    readonly log: Log;
    readonly metrics: Pick<DaemonMetrics, "set">;
  },
) {
  const { clock, log, metrics } = deps;
  let { settings, webFile, fileStamps } = first;
  let checkedAt: MonotonicMs = clock.monotonic();

  function setMetrics(isValid: boolean): void {
    const endsAt = settings.tls?.certificateEndsAt ?? Number.NaN;
    metrics.set("proxywarden_web_config_last_reload_successful", {}, webFile === null ? Number.NaN : Number(isValid));
    metrics.set("proxywarden_web_certificate_expiration_timestamp_seconds", {}, endsAt / SECOND_MS);
  }

  function checkFiles(): void {
    const now = clock.monotonic();
    if (webFile === null || now - checkedAt < FILE_CHECK_INTERVAL_MS) return;
    checkedAt = now;
    if ([...fileStamps].every(([path, stamp]) => fileStampAt(path) === stamp)) return;
    const { file } = webFile;
    const newStamps = new Map<string, string>();
    const read = readWebSettings(webFile, newStamps);
    fileStamps = newStamps;
    const next = read.ok ? checkSafeChange(settings, read.value, file) : fail(read.error.map(formatProblem));
    if (next.ok) {
      settings = next.value;
      log.info({ file }, "web configuration reloaded");
    } else {
      log.error({ file, problems: next.error }, "invalid web configuration; keeping the previous one");
    }
    setMetrics(next.ok);
  }

  return {
    /** Returns the settings. At most once a second, checks whether the files changed, and reads them again if so. */
    current(): WebSettings {
      checkFiles();
      return settings;
    },
    /** Shows the first settings in the metrics. Call it once they are in use. */
    exportMetrics: () => setMetrics(true),
    replace(next: LoadedWebSettings): void {
      ({ settings, webFile, fileStamps } = next);
      checkedAt = clock.monotonic();
      setMetrics(true);
    },
  };
}

/**
 * Checks that a changed file, which may be half written, does not turn off basic auth or change the scheme of the URL.
 */
function checkSafeChange(old: WebSettings, next: WebSettings, file: string): Result<WebSettings, readonly string[]> {
  const problems: string[] = [];
  if ((old.tls === null) !== (next.tls === null)) {
    problems.push(`${file}: tls_server_config: turning TLS ${next.tls === null ? "off" : "on"} needs a restart`);
  }
  if (old.users.size > 0 && next.users.size === 0) {
    problems.push(`${file}: basic_auth_users: turning authentication off needs a reload`);
  }
  return problems.length === 0 ? ok(next) : fail(problems);
}
