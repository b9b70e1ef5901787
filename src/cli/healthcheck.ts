import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { type ConfiguredServer, readConfiguredServer } from "../config/configured-server.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import type { EndpointAccess } from "../daemon/integrations.ts";
import { readTextFile } from "../platform/text-file.ts";
import { webUrl } from "../web/http/server.ts";
import { readConfigText } from "./config/config-loading.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith } from "./context.ts";
import { type DaemonAccessOptions, readServerAccess, sendRequest, trustHint } from "./daemon-client.ts";

interface HealthcheckOptions extends DaemonAccessOptions {
  /** Absent means the daemon at `url`. */
  readonly config?: string;
}

/** A tenth of the 30 s that container engines wait by default. */
const HEALTHCHECK_TIMEOUT_MS = 3 * SECOND_MS;

/** `healthcheck`: checks that the daemon answers `/-/healthy`. */
export async function runHealthcheck(options: HealthcheckOptions, context: CommandContext): Promise<ExitCode> {
  const { config } = options;
  const server = config === undefined ? ok(null) : readServer(config, context.env);
  if (!server.ok) return failWith(context, server.error);
  const access = accessTo(server.value, options, context.env);
  if (!access.ok) return failWith(context, access.error);
  const { url } = access.value;
  const request = { method: "GET", path: "/-/healthy" } as const;
  const response = await sendRequest(access.value, request, context, HEALTHCHECK_TIMEOUT_MS);
  if (response.ok && response.value.status === 200) {
    context.out.write("healthy\n");
    return EXIT_OK;
  }
  const hint = server.value === null ? `set --url to the daemon's address${trustHint(url)}` : OTHER_ADDRESS;
  const why = response.ok ? `it answered ${response.value.status}` : `${response.error.message}; ${hint}`;
  const problems = server.value?.problems.map(formatProblem) ?? [];
  return failWith(context, [`${url} is not healthy: ${why}`, ...problems]);
}

const OTHER_ADDRESS = "if the daemon listens elsewhere, pass its address as --url instead of --config";

/**
 * Returns how to reach the daemon, at the listen address of its configuration if there is one. The certificate is then
 * not verified, because it names another host, and the request contains no secret.
 */
function accessTo(
  server: ConfiguredServer | null,
  options: DaemonAccessOptions,
  env: NodeJS.ProcessEnv,
): Result<EndpointAccess, readonly string[]> {
  if (server === null) return readServerAccess(options, env);
  const url = webUrl(server.isEncrypted, server.listen.host, server.listen.port);
  if (options.httpConfigFile !== undefined) return readServerAccess({ ...options, url }, env);
  return ok({ url, tls: { insecureSkipVerify: true } });
}

function readServer(file: string, env: NodeJS.ProcessEnv): Result<ConfiguredServer, readonly string[]> {
  const text = readConfigText(file);
  if (!text.ok) return fail([text.error]);
  const server = readConfiguredServer({ file, text: text.value, env }, readTextFile);
  if (!server.ok) return fail([...server.error.map(formatProblem), `correct it; ${OTHER_ADDRESS}`]);
  if (server.value.listen.port !== 0) return server;
  return fail([`${file}: web.listen: port 0 picks a different port at every start; ${OTHER_ADDRESS}`]);
}
