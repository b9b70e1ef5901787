import { dirname, isAbsolute, join } from "node:path";
import type { TransportOptions } from "../../api-client/transport.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { formatProblem } from "../../config/diagnostics/problem.ts";
import { type HttpClient, httpClientSchema } from "../../config/schema/http-client.ts";
import { readYaml } from "../../config/schema-reader.ts";
import { createSystemClock } from "../../platform/clock.ts";
import { fileSecret } from "../../platform/secret-file.ts";
import { type CommandContext, readTextFile } from "../context.ts";

/** How a command gets to the daemon, and who it says it is. */
export interface DaemonAccess {
  readonly options: TransportOptions;
  /** Header of who asks, where no operator token is sent; null: none. */
  readonly authorization: string | null;
}

/** Where the daemon is, and how to reach it. */
export interface DaemonAccessOptions {
  readonly url: string;
  /** File of `tls_config`, `basic_auth` and `authorization`; absent: there are none of them. */
  readonly httpConfigFile?: string;
}

/** Reads how the daemon is reached. The error is every problem, a line each. */
export function readDaemonAccess(
  { url, httpConfigFile: file }: DaemonAccessOptions,
  env: CommandContext["env"],
): Result<DaemonAccess, readonly string[]> {
  if (file === undefined) return ok({ options: { baseUrl: url }, authorization: null });
  const text = readTextFile(file);
  if (!text.ok) return fail([`--http-config-file: ${text.error}`]);
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(dirname(file), path));
  const read = readYaml(httpClientSchema, { file, text: text.value, env }, { check: () => null, resolvePath });
  if (!read.ok) return fail(read.error.map(formatProblem));
  const problems: string[] = [];
  const collectError = <T>(key: string, result: Result<T, string>): T | undefined => {
    if (result.ok) return result.value;
    problems.push(`${file}: ${key}: ${result.error}`);
    return undefined;
  };
  const reach: DaemonAccess = {
    options: { baseUrl: url, ...readTls(read.value.value, collectError) },
    authorization: readAuthorization(read.value.value, collectError),
  };
  return problems.length === 0 ? ok(reach) : fail(problems);
}

type CollectError = <T>(key: string, result: Result<T, string>) => T | undefined;

function readTls({ tls_config: tls = { insecure_skip_verify: false } }: HttpClient, collectError: CollectError) {
  const textOf = (key: "ca_file" | "cert_file" | "key_file") =>
    tls[key] === undefined ? undefined : collectError(`tls_config.${key}`, readTextFile(tls[key]));
  const [ca, cert, key] = [textOf("ca_file"), textOf("cert_file"), textOf("key_file")];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(tls.server_name === undefined ? {} : { serverName: tls.server_name }),
    insecureSkipVerify: tls.insecure_skip_verify,
  };
}

function readAuthorization(
  { basic_auth: basic, authorization }: HttpClient,
  collectError: CollectError,
): string | null {
  const secretOf = (key: string, text: string | undefined, path: string | undefined): string => {
    if (path === undefined) return text ?? "";
    const secret = fileSecret(path, createSystemClock());
    return collectError(key, secret.ok ? ok(secret.value.value()) : secret) ?? "";
  };
  if (basic !== undefined) {
    const password = secretOf("basic_auth.password_file", basic.password, basic.password_file);
    return `Basic ${Buffer.from(`${basic.username}:${password}`, "utf8").toString("base64")}`;
  }
  if (authorization === undefined) return null;
  const { type, credentials, credentials_file: path } = authorization;
  return `${type} ${secretOf("authorization.credentials_file", credentials, path)}`;
}
