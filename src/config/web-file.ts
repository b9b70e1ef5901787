import { ok, type Result } from "../base/result.ts";
import { checkFile, type ReadFile, readReferencedFile } from "./checks.ts";
import { type ConfigProblem, type KeyPositions, keyPositionsOf, type Path } from "./diagnostics/problem.ts";
import { type Warning, warning, warningProblems } from "./diagnostics/warnings.ts";
import { type WebConfig, webSchema } from "./schema/web-file.ts";
import { markKey } from "./yaml/position.ts";
import { type ReadDocument, readYaml } from "./yaml-reader.ts";

/** A valid web configuration, the warnings about it, and what is needed to read it again. */
export interface WebFile {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  readonly config: WebConfig;
  readonly warnings: readonly ConfigProblem[];
  readonly keys: KeyPositions;
}

/**
 * Reads a web configuration file and checks the files that it names. Fails with every problem in it. Paths are relative
 * to its own folder.
 */
export function readWebFile(
  file: string,
  env: NodeJS.ProcessEnv,
  readFile: ReadFile,
): Result<WebFile, readonly ConfigProblem[]> {
  const text = readReferencedFile(file, readFile);
  if (!text.ok) return text;
  // The only values that its schema leaves to be checked are files.
  const read = readYaml(webSchema, { file, text: text.value, env, isGoYaml: true }, (_, path) =>
    checkFile(path, readFile),
  );
  if (!read.ok) return read;
  const [warnings, keys] = [findWebWarnings(read.value), keyPositionsOf(read.value)];
  return ok({ file, env, config: read.value.value, warnings, keys });
}

function findWebWarnings(document: ReadDocument<WebConfig>): ConfigProblem[] {
  const { value: config, marks } = document;
  const { tls_server_config: tls, http_server_config: http, rate_limit: rate } = config;
  const warnings: Warning[] = [...usersWarnings(config), ...(tls === undefined ? [] : tlsWarnings(tls))];
  const http2: Path = ["http_server_config", "http2"];
  if (tls === undefined && marks.has(markKey(["tls_server_config"]))) {
    const message = "it has no certificate, so the server uses plain HTTP";
    warnings.push(warning(["tls_server_config"], "must name a certificate, or be left out", message));
  }
  if (rate !== undefined && rate.interval > 0 && rate.burst === 0) {
    const message = "a burst of 0 rejects every request except health checks";
    warnings.push(warning(["rate_limit"], "must have a burst of 1 or more", message));
  }
  if (http.http2 && marks.has(markKey(http2))) {
    const message = "HTTP/2 is not supported: clients that prefer it use HTTP/1.1";
    warnings.push(warning(http2, "may be left out", message));
  }
  return warningProblems(warnings, document);
}

/** Minimum cost that is advised, because a stolen hash of a lower cost can be guessed quickly. */
const BCRYPT_COST_ADVISED_MIN = 10;

function usersWarnings({ basic_auth_users: users, tls_server_config: tls }: WebConfig): Warning[] {
  const weakHashes = Object.entries(users).flatMap(([user, hash]): Warning[] => {
    const cost = Number(hash.slice(4, 6));
    const message = `the hash has a cost of ${cost}; below ${BCRYPT_COST_ADVISED_MIN} a stolen hash can be guessed quickly`;
    const path = ["basic_auth_users", user];
    if (cost >= BCRYPT_COST_ADVISED_MIN) return [];
    return [warning(path, `must have a cost of ${BCRYPT_COST_ADVISED_MIN} or more`, message)];
  });
  if (tls !== undefined || Object.keys(users).length === 0) return weakHashes;
  const message = "without tls_server_config passwords are sent in plain text";
  return [warning(["basic_auth_users"], "must be used with tls_server_config", message), ...weakHashes];
}

function tlsWarnings(tls: NonNullable<WebConfig["tls_server_config"]>): Warning[] {
  const { min_version: oldest, client_auth_type: type, client_ca, client_ca_file } = tls;
  const warnings: Warning[] = [];
  if (oldest === "TLS10" || oldest === "TLS11") {
    const message = `${oldest} is insecure, and allows SHA-1 signatures`;
    warnings.push(warning(["tls_server_config", "min_version"], "must be TLS12 or TLS13", message));
  }
  const verifies = type === "RequireAndVerifyClientCert" || type === "VerifyClientCertIfGiven";
  if (verifies && client_ca === undefined && client_ca_file === undefined) {
    const message =
      "without client_ca_file the public CAs are trusted: every client with a certificate from one of them is admitted";
    warnings.push(warning(["tls_server_config", "client_auth_type"], "must be used with client_ca_file", message));
  }
  return warnings;
}
