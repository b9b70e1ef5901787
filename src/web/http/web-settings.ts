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
  /** Headers of every answer beside ours, or instead of them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bcrypt hashes by user; empty: everybody is let in. */
  readonly users: ReadonlyMap<string, string>;
  /** How many requests of all clients together are let in; null: no limit. */
  readonly rate: { readonly intervalMs: DurationMs; readonly burst: number } | null;
}

/** Terms that came about, and what they were made of. */
export interface LoadedWebSettings {
  readonly settings: WebSettings;
  /** Null: they stand on no file. */
  readonly source: SettingsSource | null;
  readonly fileStamps: FileStamps;
}

interface SettingsSource {
  readonly webFile: WebFile;
  readonly readFile: ReadFile;
}

/** The files that were looked at, and by what to see that one is no longer the same. */
type FileStamps = ReadonlyMap<string, string>;

/** Plain HTTP without authentication. */
export const OPEN_WEB_SETTINGS: LoadedWebSettings = {
  settings: { tls: null, headers: {}, users: new Map(), rate: null },
  source: null,
  fileStamps: new Map(),
};

/** Makes terms of a web configuration, and of the certificates and keys that it names. The error is every problem. */
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
  // Stamped before it is read, so that no change is missed; and what is not there yet is waited for.
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

/** The terms in force. */
export interface LiveWebSettings {
  /** Looks at most once a second whether the files have changed, and reads them anew where they have. */
  current(): WebSettings;
  /** Puts others in force, whatever stood before. */
  replace(prepared: LoadedWebSettings): void;
}

/** Dependencies of the live settings. */
export interface WebSettingsDeps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  readonly metrics: Pick<DaemonMetrics, "set">;
}

/** Looking costs a system call a file; a renewed certificate is shown within this. */
const FILE_CHECK_INTERVAL_MS: DurationMs = SECOND_MS;

/** Puts terms in force, and keeps them up with their files. What is wrong when it is read anew changes nothing. */
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

/** What opens the server wider, or moves its address, is not done on the word of a file that may be half written. */
function checkNoWidening(old: WebSettings, next: WebSettings, file: string): Result<WebSettings, readonly string[]> {
  const problems: string[] = [];
  if ((old.tls === null) !== (next.tls === null)) {
    problems.push(`${file}: tls_server_config: TLS is turned ${next.tls === null ? "off" : "on"} by a reload alone`);
  }
  if (old.users.size > 0 && next.users.size === 0) {
    problems.push(`${file}: basic_auth_users: basic auth is turned off by a reload alone`);
  }
  return problems.length === 0 ? ok(next) : fail(problems);
}
