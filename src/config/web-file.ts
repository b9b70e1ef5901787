import { dirname, isAbsolute, join } from "node:path";
import { ok, type Result } from "../base/result.ts";
import { type Bearings, checkValue, readNamed } from "./checks.ts";
import { type Marks, markKey, placeIn } from "./yaml/position.ts";
import { byPlace, type ConfigProblem, type Path, problemOf } from "./diagnostics/problem.ts";
import { readAs } from "./schema-reader.ts";
import { type WebConfig, webSchema } from "./schema/web-file.ts";

/** Reads a file; the error says which, and why it can't be read. */
export type ReadFile = (path: string) => Result<string, string>;

/** A web configuration that was read, and how to read it again. */
export interface WebFile {
  readonly file: string;
  readonly config: WebConfig;
  /** Reads the file anew, and looks at those that it names; all of it through `readFile`. */
  reread(readFile: ReadFile): Result<WebConfig, readonly ConfigProblem[]>;
}

/** A web configuration file, and the warnings about it. */
export interface ReadWebFile {
  readonly webFile: WebFile;
  readonly warnings: readonly ConfigProblem[];
}

/** Reads a web configuration file; fails with every problem of it. Relative paths in it start at its own folder. */
export function readWebFile(file: string, from: Bearings): Result<ReadWebFile, readonly ConfigProblem[]> {
  const read = readWith(file, from, from.source.readFile);
  if (!read.ok) return read;
  const { value: config, marks } = read.value;
  return ok({ webFile: webFileOf({ file, config }, from), warnings: warningsOf(config, marks, file) });
}

/** A web configuration that was read before. */
export function webFileOf({ file, config }: Pick<WebFile, "file" | "config">, from: Bearings): WebFile {
  const reread = (readFile: ReadFile) => {
    const read = readWith(file, from, readFile);
    return read.ok ? ok(read.value.value) : read;
  };
  return { file, config, reread };
}

/** A thousand users need 8,000. The file is read between two requests, and more would keep others waiting over 50 ms. */
const TOKENS_MAX = 10_000;
/** A thousand users are a thousand values. Aliases of aliases make many values of few tokens. */
const VALUES_MAX = 3_000;

function readWith(file: string, from: Bearings, readFile: ReadFile | undefined) {
  const text = readNamed(file, readFile);
  if (!text.ok) return text;
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(dirname(file), path));
  const source = { ...from.source, ...(readFile === undefined ? {} : { readFile }) };
  const bearings: Bearings = { ...from, source, resolvePath };
  return readAs(
    webSchema,
    { file, text: text.value, env: source.env, isGoYaml: true, tokensMax: TOKENS_MAX, valuesMax: VALUES_MAX },
    { check: (check, value) => checkValue(check, value, bearings), resolvePath },
  );
}

/** A warning about a valid file: where it is, what would be better, and why. */
type Warning = readonly [path: Path, expected: string, message: string];

function warningsOf(config: WebConfig, marks: Marks, file: string): ConfigProblem[] {
  const { tls_server_config: tls, http_server_config: http, rate_limit: rate } = config;
  const warnings = [...usersWarnings(config), ...(tls === undefined ? [] : tlsWarnings(tls))];
  const http2: Path = ["http_server_config", "http2"];
  if (tls === undefined && marks.has(markKey(["tls_server_config"]))) {
    const message = "it names no certificate, so plain HTTP is served";
    warnings.push([["tls_server_config"], "must name a certificate, or be left out", message]);
  }
  if (rate !== undefined && rate.interval > 0 && rate.burst === 0) {
    warnings.push([
      ["rate_limit"],
      "must have a burst of 1 or more",
      "a burst of 0 refuses every request but health checks",
    ]);
  }
  if (http.http2 && marks.has(markKey(http2))) {
    warnings.push([http2, "may be left out", "HTTP/2 is not spoken: clients that prefer it speak HTTP/1.1"]);
  }
  return warnings
    .map(([path, expected, message]) =>
      problemOf(file, { ...placeIn(marks, path), path, found: "nothing", expected, message }),
    )
    .toSorted(byPlace);
}

/** Under this cost a stolen hash is guessed fast. */
const COST_ADVISED = 10;

function usersWarnings({ basic_auth_users: users, tls_server_config: tls }: WebConfig): Warning[] {
  const cheap = Object.entries(users).flatMap(([user, hash]): Warning[] => {
    const cost = Number(hash.slice(4, 6));
    const message = `the hash has a cost of ${cost}; under ${COST_ADVISED} a stolen one is guessed fast`;
    const path = ["basic_auth_users", user];
    return cost < COST_ADVISED ? [[path, `must have a cost of ${COST_ADVISED} or more`, message]] : [];
  });
  if (tls !== undefined || Object.keys(users).length === 0) return cheap;
  const message = "without tls_server_config passwords travel in clear";
  return [[["basic_auth_users"], "must go with tls_server_config", message], ...cheap];
}

function tlsWarnings(tls: NonNullable<WebConfig["tls_server_config"]>): Warning[] {
  const { min_version: oldest, client_auth_type: type, client_ca, client_ca_file } = tls;
  const warnings: Warning[] = [];
  if (oldest === "TLS10" || oldest === "TLS11") {
    const message = `${oldest} is broken, and takes signatures by SHA-1 with it`;
    warnings.push([["tls_server_config", "min_version"], "must be TLS12 or TLS13", message]);
  }
  const verifies = type === "RequireAndVerifyClientCert" || type === "VerifyClientCertIfGiven";
  if (verifies && client_ca === undefined && client_ca_file === undefined) {
    const message =
      "without client_ca_file the public authorities count: every client with a certificate of theirs is admitted";
    warnings.push([["tls_server_config", "client_auth_type"], "must go with client_ca_file", message]);
  }
  return warnings;
}
