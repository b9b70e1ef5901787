import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { formatProblem } from "../../config/diagnostics/problem.ts";
import type { ReadFile, WebFile } from "../../config/web-file.ts";
import type { DaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { fileStampAt } from "../../platform/secret-file.ts";
import { loadTlsSettings, type TlsSettings } from "./tls/tls-settings.ts";

/** Settings of the web server towards clients. */
export interface WebSettings {
  /** Null: plain HTTP. */
  readonly tls: TlsSettings | null;
  /** Headers of every response, added to the common ones or replacing them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bcrypt hashes by user; empty: no authentication. */
  readonly users: ReadonlyMap<string, string>;
  /** Limit on the requests of all clients together; null: no limit. */
  readonly rate: { readonly intervalMs: DurationMs; readonly burst: number } | null;
}

/** Settings and the files they were read from. */
export interface LoadedWebSettings {
  readonly settings: WebSettings;
  /** Null: there is no web configuration file. */
  readonly source: SettingsSource | null;
  readonly fileStamps: FileStamps;
}

interface SettingsSource {
  readonly webFile: WebFile;
  readonly readFile: ReadFile;
}

/** Files that were read, with what changes when the file changes. */
type FileStamps = ReadonlyMap<string, string>;

/** Plain HTTP without authentication. */
export const OPEN_WEB_SETTINGS: LoadedWebSettings = {
  settings: { tls: null, headers: {}, users: new Map(), rate: null },
  source: null,
  fileStamps: new Map(),
};

/** Loads the certificates and keys that a web configuration names. The error lists every problem. */
export function loadWebSettings(
  webFile: WebFile | null,
  readFile: ReadFile,
): Result<LoadedWebSettings, readonly string[]> {
  if (webFile === null) return ok(OPEN_WEB_SETTINGS);
  const source = { webFile, readFile };
  const { outcome, fileStamps: stamps } = readWebSettings(source);
  return outcome.ok ? ok({ settings: outcome.value, source, fileStamps: stamps }) : outcome;
}

interface LoadAttempt {
  readonly outcome: Result<WebSettings, readonly string[]>;
  readonly fileStamps: FileStamps;
}

function readWebSettings({ webFile, readFile }: SettingsSource): LoadAttempt {
  const stamps = new Map<string, string>();
  // The stamp is taken before the file is read, so that no change is missed. A missing file has one too.
  const readTracked: ReadFile = (path) => {
    if (!stamps.has(path)) stamps.set(path, fileStampAt(path));
    return readFile(path);
  };
  const read = webFile.reread(readTracked);
  if (!read.ok) return { outcome: fail(read.error.map(formatProblem)), fileStamps: stamps };
  const { tls_server_config: config, http_server_config: http, basic_auth_users: users, rate_limit: rate } = read.value;
  const tls = config === undefined ? ok(null) : loadTlsSettings(config, readTracked);
  if (!tls.ok) return { outcome: fail([`${webFile.file}: ${tls.error}`]), fileStamps: stamps };
  const webSettings: WebSettings = {
    tls: tls.value,
    headers: Object.fromEntries(Object.entries(http.headers).filter(([, value]) => value !== "")),
    users: new Map(Object.entries(users)),
    rate: rate === undefined || rate.interval === 0 ? null : { intervalMs: rate.interval, burst: rate.burst },
  };
  return { outcome: ok(webSettings), fileStamps: stamps };
}

/** The current settings. */
export interface LiveWebSettings {
  /** Returns the settings; reads the files again if they changed, which it checks at most once a second. */
  current(): WebSettings;
  /** Replaces the settings. */
  replace(prepared: LoadedWebSettings): void;
}

interface WebSettingsDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  readonly metrics: Pick<DaemonMetrics, "set">;
}

/** A check costs a system call a file. A renewed certificate is used within this time. */
const FILE_CHECK_INTERVAL_MS: DurationMs = SECOND_MS;

/** Creates settings that follow their files. An invalid file changes nothing. */
export function watchWebSettings(first: LoadedWebSettings, { clock, log, metrics }: WebSettingsDeps): LiveWebSettings {
  let prepared = first;
  let stamps = first.fileStamps;
  let checkedAt: MonotonicMs = clock.monotonic();

  function show(isFine: boolean): void {
    const isFile = prepared.source !== null;
    const endsAt = prepared.settings.tls?.certificateEndsAt ?? Number.NaN;
    metrics.set("proxywarden_web_config_last_reload_successful", {}, isFile ? Number(isFine) : Number.NaN);
    metrics.set("proxywarden_web_certificate_expiration_timestamp_seconds", {}, endsAt / SECOND_MS);
  }

  function checkFiles(): void {
    const now = clock.monotonic();
    if (prepared.source === null || now - checkedAt < FILE_CHECK_INTERVAL_MS) return;
    checkedAt = now;
    if ([...stamps].every(([path, stamp]) => fileStampAt(path) === stamp)) return;
    const { file } = prepared.source.webFile;
    const attempt = readWebSettings(prepared.source);
    stamps = attempt.fileStamps;
    const next = attempt.outcome.ok ? checkNoWidening(prepared.settings, attempt.outcome.value, file) : attempt.outcome;
    if (next.ok) {
      prepared = { ...prepared, settings: next.value, fileStamps: stamps };
      log.info({ file }, "web configuration reloaded");
    } else {
      log.error({ file, problems: next.error }, "invalid web configuration; keeping the previous one");
    }
    show(next.ok);
  }

  show(true);
  return {
    current() {
      checkFiles();
      return prepared.settings;
    },
    replace(next) {
      prepared = next;
      stamps = next.fileStamps;
      checkedAt = clock.monotonic();
      show(true);
    },
  };
}

/** Checks that a changed file, which may be half written, does not turn off basic auth or change the scheme of the URL. */
function checkNoWidening(old: WebSettings, next: WebSettings, file: string): Result<WebSettings, readonly string[]> {
  const problems: string[] = [];
  if ((old.tls === null) !== (next.tls === null)) {
    problems.push(`${file}: tls_server_config: turning TLS ${next.tls === null ? "off" : "on"} needs a restart`);
  }
  if (old.users.size > 0 && next.users.size === 0) {
    problems.push(`${file}: basic_auth_users: turning basic auth off needs a reload`);
  }
  return problems.length === 0 ? ok(next) : fail(problems);
}
