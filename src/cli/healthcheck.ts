import { dirname } from "node:path";
import { createTransport } from "../api-client/transport.ts";
import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { resolveFrom } from "../config/checks.ts";
import { formatProblem, toProblems } from "../config/diagnostics/problem.ts";
import { type ListenAddress, listenAddress } from "../config/schema/web.ts";
import { isTls } from "../config/schema/web-file.ts";
import { parseYaml, valueAt, type YamlSource } from "../config/yaml/document.ts";
import { webUrl } from "../web/http/server.ts";
import { readConfigText } from "./config/config-loading.ts";
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
  const server = readWebServer(config, env);
  if (!server.ok) return server;
  const { listen, isEncrypted } = server.value;
  if (listen.port === 0) return fail(["web.listen: port 0 picks a different port at every start; pass --url"]);
  const url = webUrl(isEncrypted, listen.host, listen.port);
  if (options.httpConfigFile !== undefined) return readDaemonAccess({ ...options, url }, env);
  return ok({ options: { baseUrl: url, insecureSkipVerify: true }, authorization: null });
}

/** Where a configuration makes the daemon listen. */
interface ConfiguredServer {
  readonly listen: ListenAddress;
  readonly isEncrypted: boolean;
}

/**
 * Reads where the daemon of a configuration listens, and nothing else: a daemon whose files became invalid in the
 * meantime continues with the previous ones, so it is healthy.
 */
function readWebServer(file: string, env: CommandContext["env"]): Result<ConfiguredServer, readonly string[]> {
  const config = readYamlValue(file, { env });
  if (!config.ok) return config;
  const listen = listenAddress.safeParse(valueAt(config.value, ["web", "listen"]));
  if (!listen.success) return fail([`${file}: web.listen: ${listen.error.issues[0]!.message}`]);
  const webFile = valueAt(config.value, ["web", "web_config_file"]);
  if (typeof webFile !== "string") return ok({ listen: listen.data, isEncrypted: false });
  const web = readYamlValue(resolveFrom(dirname(file), webFile), { env, isGoYaml: true });
  if (!web.ok) return web;
  const tls = Object.entries(valueAt(web.value, ["tls_server_config"]) ?? {});
  const filledIn = tls.filter(([, value]) => value !== null && value !== "");
  return ok({ listen: listen.data, isEncrypted: isTls(Object.fromEntries(filledIn)) });
}

/** Reads a YAML file without checking its values. The error lists what prevents that. */
function readYamlValue(
  file: string,
  options: Pick<YamlSource, "env" | "isGoYaml">,
): Result<unknown, readonly string[]> {
  const text = readConfigText(file);
  if (!text.ok) return fail([text.error]);
  const { value, marks, findings } = parseYaml({ file, text: text.value, ...options });
  // Without marks, the file could not be parsed.
  return marks.size > 0 || findings.length === 0 ? ok(value) : fail(toProblems(file, findings).map(formatProblem));
}
