import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { formatProblem } from "../../config/diagnostics/problem.ts";
import type { ReadFile, WebFile } from "../../config/web-file.ts";
import type { WardenMetrics } from "../../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { stampAt } from "../../platform/secret-file.ts";
import { prepareTls, type TlsTerms } from "./tls/tls-settings.ts";

/** Settings of the web server towards clients. */
export interface Terms {
  /** Null: plain HTTP. */
  readonly tls: TlsTerms | null;
  /** Headers of every answer beside ours, or instead of them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bcrypt hashes by user; empty: everybody is let in. */
  readonly users: ReadonlyMap<string, string>;
  /** How many requests of all clients together are let in; null: no limit. */
  readonly rate: { readonly intervalMs: DurationMs; readonly burst: number } | null;
}

/** Terms that came about, and what they were made of. */
export interface PreparedTerms {
  readonly terms: Terms;
  /** Null: they stand on no file. */
  readonly source: Source | null;
  readonly stamps: Stamps;
}

interface Source {
  readonly webFile: WebFile;
  readonly readFile: ReadFile;
}

/** The files that were looked at, and by what to see that one is no longer the same. */
type Stamps = ReadonlyMap<string, string>;

/** Plain HTTP without authentication. */
export const OPEN_TERMS: PreparedTerms = {
  terms: { tls: null, headers: {}, users: new Map(), rate: null },
  source: null,
  stamps: new Map(),
};

/** Makes terms of a web configuration, and of the certificates and keys that it names. The error is every problem. */
export function prepareTerms(webFile: WebFile | null, readFile: ReadFile): Result<PreparedTerms, readonly string[]> {
  if (webFile === null) return ok(OPEN_TERMS);
  const source = { webFile, readFile };
  const { outcome, stamps } = readTerms(source);
  return outcome.ok ? ok({ terms: outcome.value, source, stamps }) : outcome;
}

interface Attempt {
  readonly outcome: Result<Terms, readonly string[]>;
  readonly stamps: Stamps;
}

function readTerms({ webFile, readFile }: Source): Attempt {
  const stamps = new Map<string, string>();
  // Stamped before it is read, so that no change is missed; and what is not there yet is waited for.
  const watched: ReadFile = (path) => {
    if (!stamps.has(path)) stamps.set(path, stampAt(path));
    return readFile(path);
  };
  const read = webFile.reread(watched);
  if (!read.ok) return { outcome: fail(read.error.map(formatProblem)), stamps };
  const { tls_server_config: config, http_server_config: http, basic_auth_users: users, rate_limit: rate } = read.value;
  const tls = config === undefined ? ok(null) : prepareTls(config, watched);
  if (!tls.ok) return { outcome: fail([`${webFile.file}: ${tls.error}`]), stamps };
  const terms: Terms = {
    tls: tls.value,
    headers: Object.fromEntries(Object.entries(http.headers).filter(([, value]) => value !== "")),
    users: new Map(Object.entries(users)),
    rate: rate === undefined || rate.interval === 0 ? null : { intervalMs: rate.interval, burst: rate.burst },
  };
  return { outcome: ok(terms), stamps };
}

/** The terms in force. */
export interface StandingTerms {
  /** Looks at most once a second whether the files have changed, and reads them anew where they have. */
  current(): Terms;
  /** Puts others in force, whatever stood before. */
  adopt(prepared: PreparedTerms): void;
}

/** Dependencies of the live settings. */
export interface TermsParts {
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
  readonly metrics: Pick<WardenMetrics, "set">;
}

/** Looking costs a system call a file; a renewed certificate is shown within this. */
const LOOK_INTERVAL_MS: DurationMs = SECOND_MS;

/** Puts terms in force, and keeps them up with their files. What is wrong when it is read anew changes nothing. */
export function keepTerms(first: PreparedTerms, { clock, log, metrics }: TermsParts): StandingTerms {
  let prepared = first;
  let stamps = first.stamps;
  let lookedAt: MonotonicMs = clock.monotonic();

  function show(isFine: boolean): void {
    const isFile = prepared.source !== null;
    const endsAt = prepared.terms.tls?.certificateEndsAt ?? Number.NaN;
    metrics.set("proxywarden_web_config_last_reload_successful", {}, isFile ? Number(isFine) : Number.NaN);
    metrics.set("proxywarden_web_certificate_expiration_timestamp_seconds", {}, endsAt / SECOND_MS);
  }

  function look(): void {
    const now = clock.monotonic();
    if (prepared.source === null || now - lookedAt < LOOK_INTERVAL_MS) return;
    lookedAt = now;
    if ([...stamps].every(([path, stamp]) => stampAt(path) === stamp)) return;
    const { file } = prepared.source.webFile;
    const attempt = readTerms(prepared.source);
    stamps = attempt.stamps;
    const next = attempt.outcome.ok ? permitted(prepared.terms, attempt.outcome.value, file) : attempt.outcome;
    if (next.ok) {
      prepared = { ...prepared, terms: next.value, stamps };
      log.info({ file }, "web configuration reloaded");
    } else {
      log.error(
        { file, problems: next.error },
        "invalid web configuration; keeping the previous one",
      );
    }
    show(next.ok);
  }

  show(true);
  return {
    current() {
      look();
      return prepared.terms;
    },
    adopt(next) {
      prepared = next;
      stamps = next.stamps;
      lookedAt = clock.monotonic();
      show(true);
    },
  };
}

/** What opens the server wider, or moves its address, is not done on the word of a file that may be half written. */
function permitted(old: Terms, next: Terms, file: string): Result<Terms, readonly string[]> {
  const problems: string[] = [];
  if ((old.tls === null) !== (next.tls === null)) {
    problems.push(`${file}: tls_server_config: TLS is turned ${next.tls === null ? "off" : "on"} by a reload alone`);
  }
  if (old.users.size > 0 && next.users.size === 0) {
    problems.push(`${file}: basic_auth_users: basic auth is turned off by a reload alone`);
  }
  return problems.length === 0 ? ok(next) : fail(problems);
}
