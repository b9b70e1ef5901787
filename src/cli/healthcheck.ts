import { createTransport } from "../api-client/transport.ts";
import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { webUrl } from "../web/http/server.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode } from "./context.ts";
import { type DaemonAccess, type DaemonAccessOptions, readDaemonAccess } from "./daemon-api/connection.ts";
import { withProgress } from "./output/progress.ts";

/** Options of `healthcheck`. */
export interface HealthcheckOptions extends DaemonAccessOptions {
  /** Absent: the daemon at `url`. */
  readonly config?: string;
}

/** A container engine waits 30 s by default; a daemon that needs a tenth of it is not well. */
const HEALTHCHECK_TIMEOUT_MS = 3 * SECOND_MS;

/** `healthcheck`: whether the daemon answers /-/healthy. */
export async function runHealthcheck(options: HealthcheckOptions, context: CommandContext): Promise<ExitCode> {
  const { env, out, err } = context;
  const reach =
    options.config === undefined ? readDaemonAccess(options, env) : ownDaemonAccess(options.config, options, env);
  if (!reach.ok) {
    err.write(reach.error.map((problem) => `proxywarden: ${problem}\n`).join(""));
    return EXIT_FAILURE;
  }
  const { baseUrl } = reach.value.options;
  const { authorization } = reach.value;
  const transport = createTransport(reach.value.options);
  const request = {
    method: "GET",
    path: "/-/healthy",
    headers: authorization === null ? {} : { authorization },
  } as const;
  const answer = await withProgress(
    `waiting for ${baseUrl}`,
    transport.request(request, AbortSignal.timeout(HEALTHCHECK_TIMEOUT_MS)),
    context,
  );
  await transport.close();
  if (answer.ok && answer.value.status === 200) {
    out.write("healthy\n");
    return EXIT_OK;
  }
  const why = answer.ok
    ? `it answered ${answer.value.status}`
    : `${answer.error.message}; set --url to the daemon's address`;
  err.write(`proxywarden: ${baseUrl} is not healthy: ${why}\n`);
  return EXIT_FAILURE;
}

/**
 * The way to the daemon of a configuration. Its certificate is that of another name than this machine's own address, and
 * is not checked, as no probe does: it only answers whether it is healthy, and receives no data.
 */
function ownDaemonAccess(
  config: string,
  options: DaemonAccessOptions,
  env: CommandContext["env"],
): Result<DaemonAccess, readonly string[]> {
  const read = readConfigFile(config, env);
  if (!read.ok) return read;
  const { listen } = read.value.config.web;
  if (listen.port === 0) return fail(["web.listen: port 0 picks a different port at every start; pass --url"]);
  const isEncrypted = read.value.webFile?.config.tls_server_config !== undefined;
  const url = webUrl(isEncrypted, listen.host, listen.port);
  if (options.httpConfigFile !== undefined) return readDaemonAccess({ ...options, url }, env);
  return ok({ options: { baseUrl: url, insecureSkipVerify: true }, authorization: null });
}
