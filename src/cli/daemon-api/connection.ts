import { dirname, resolve } from "node:path";
import { authorizationOf, type IntegrationAccess, tlsOptions } from "../../api-client/integration-client.ts";
import type { TransportOptions } from "../../api-client/transport.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { formatProblem } from "../../config/diagnostics/problem.ts";
import { httpClientSchema } from "../../config/schema/http-client.ts";
import { readYaml } from "../../config/schema-reader.ts";
import { integrationAccess, secretReader } from "../../daemon/integrations.ts";
import { createSystemClock } from "../../platform/clock.ts";
import { readTextFile } from "../../platform/text-file.ts";
import type { CommandContext } from "../context.ts";

/** How a command reaches the daemon. */
export interface DaemonAccess {
  readonly options: TransportOptions;
  /** Authorization header of requests without an operator token, or null if there is none. */
  readonly authorization: string | null;
}

/** The options `--url` and `--http-config-file`. */
export interface DaemonAccessOptions {
  readonly url: string;
  /** File with `tls_config`, `basic_auth` and `authorization`. Absent means none of them. */
  readonly httpConfigFile?: string;
}

/** Reads how to reach the daemon. The error lists every problem, one per line. */
export function readDaemonAccess(
  options: DaemonAccessOptions,
  env: CommandContext["env"],
): Result<DaemonAccess, readonly string[]> {
  const access = readServerAccess(options, env);
  if (!access.ok) return access;
  const { url } = options;
  const { credentials, tls = {} } = access.value;
  return ok({
    options: { baseUrl: url, ...tlsOptions(tls) },
    authorization: credentials === undefined ? null : authorizationOf(credentials, new URL(url)),
  });
}

/** Reads how to reach a server. The error lists every problem, one per line. */
export function readServerAccess(
  { url, httpConfigFile: file }: DaemonAccessOptions,
  env: CommandContext["env"],
): Result<IntegrationAccess, readonly string[]> {
  if (file === undefined) return ok({ url });
  const text = readTextFile(file);
  if (!text.ok) return fail([`--http-config-file: ${text.error}`]);
  const resolvePath = (path: string) => resolve(dirname(file), path);
  const read = readYaml(httpClientSchema, { file, text: text.value, env }, { check: () => null, resolvePath });
  if (!read.ok) return fail(read.error.map(formatProblem));
  const problems: string[] = [];
  const secret = secretReader(createSystemClock(), problems);
  const access = integrationAccess(`${file}: `, { url, ...read.value.value }, secret, problems);
  return problems.length > 0 ? fail(problems) : ok(access);
}
