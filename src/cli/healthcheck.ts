import { createTransport } from "../api-client/transport.ts";
import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { webUrl } from "../web/http/server.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith } from "./context.ts";
import { type DaemonAccess, type DaemonAccessOptions, readDaemonAccess } from "./daemon-api/connection.ts";
import { withProgress } from "./output/progress.ts";

interface HealthcheckOptions extends DaemonAccessOptions {
  /** Absent means the daemon at `url`. */
  readonly config?: string;
}

/** A tenth of the 30 s that container engines wait by default. */
const HEALTHCHECK_TIMEOUT_MS = 3 * SECOND_MS;

/** `healthcheck`: checks that the daemon answers `/-/healthy`. */
export async function runHealthcheck(options: HealthcheckOptions, context: CommandContext): Promise<ExitCode> {
  const access =
    options.config === undefined
      ? readDaemonAccess(options, context.env)
      : ownDaemonAccess(options.config, options, context.env);
  if (!access.ok) return failWith(context, access.error);
  const { authorization, options: transportOptions } = access.value;
  const { baseUrl } = transportOptions;
  const transport = createTransport(transportOptions);
  const request = {
    method: "GET",
    path: "/-/healthy",
    headers: authorization === null ? {} : { authorization },
  } as const;
  const response = await withProgress(
    `waiting for ${baseUrl}`,
    transport.request(request, AbortSignal.timeout(HEALTHCHECK_TIMEOUT_MS)),
    context,
  );
  await transport.close();
  if (response.ok && response.value.status === 200) {
    context.out.write("healthy\n");
    return EXIT_OK;
  }
  const why = response.ok
    ? `it answered ${response.value.status}`
    : `${response.error.message}; set --url to the daemon's address`;
  return failWith(context, `${baseUrl} is not healthy: ${why}`);
}

/**
 * Returns how to reach the daemon of a configuration at its listen address. The certificate is not verified, because it
 * names another host, and the request contains no secret.
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
