import { SECOND_MS } from "../base/duration.ts";
import { type ConfiguredServer, readConfiguredServer } from "../config/configured-server.ts";
import { withoutCredentials } from "../config/diagnostics/problem.ts";
import type { EndpointAccess } from "../daemon/integrations.ts";
import { webUrl } from "../web/http/listen-address.ts";
import { type CommandContext, CommandFailure, orFail } from "./context.ts";
import {
  type DaemonAccessOptions,
  needsTls,
  readServerAccess,
  sendRequest,
  TLS_HINT,
  trustHint,
} from "./daemon-client.ts";

interface HealthcheckOptions extends DaemonAccessOptions {
  /** Absent means the daemon at `url`. */
  readonly config?: string;
}

/** A tenth of the 30 s for which container engines wait by default. */
const HEALTHCHECK_TIMEOUT_MS = 3 * SECOND_MS;

/** `healthcheck`: checks that the daemon answers `/-/healthy`. */
export async function runHealthcheck(options: HealthcheckOptions, context: CommandContext): Promise<void> {
  const { config } = options;
  const server = config === undefined ? null : await readServer(config, context.env);
  const access = accessTo(server, options, context.env);
  const url = withoutCredentials(access.url);
  const request = { method: "GET", path: "/-/healthy" } as const;
  const response = await sendRequest(access, request, context, HEALTHCHECK_TIMEOUT_MS);
  if (response.ok && response.value.status === 200) {
    context.out.write("healthy\n");
    return;
  }
  const elsewhere = server === null ? `set --url to the daemon's address${trustHint(url)}` : OTHER_ADDRESS;
  const advice = response.ok ? statusAdvice(response.value.status, url, elsewhere) : [elsewhere];
  // The configuration may require a certificate, without which the daemon closes the connection.
  if (!response.ok && response.error.kind === "reset" && access.tls?.insecureSkipVerify === true)
    advice.push("if it requires a client certificate, pass one with --http-config-file");
  const why = response.ok ? `it answered ${response.value.status}` : response.error.message;
  throw new CommandFailure([`${url} is not healthy: ${[why, ...advice].join("; ")}`, ...(server?.problems ?? [])]);
}

/** Returns what to do about a status other than 200. A daemon that limits its clients answers 429. */
function statusAdvice(status: number, url: string, elsewhere: string): string[] {
  if (status === 429) return [];
  return [...(needsTls(status, url) ? [TLS_HINT] : []), elsewhere];
}

const OTHER_ADDRESS = "if the daemon listens elsewhere, pass its address as --url instead of --config";

/**
 * Returns how to reach the daemon, at the listen address of its configuration if there is one. Without
 * `--http-config-file`, the certificate is then not verified: it names another host, and the request contains no secret.
 */
function accessTo(
  server: ConfiguredServer | null,
  options: DaemonAccessOptions,
  env: NodeJS.ProcessEnv,
): EndpointAccess {
  if (server === null) return readServerAccess(options, env);
  const url = webUrl(server.isEncrypted, server.listen.host, server.listen.port);
  if (options.httpConfigFile !== undefined) return readServerAccess({ ...options, url }, env);
  return { url, tls: { insecureSkipVerify: true } };
}

async function readServer(file: string, env: NodeJS.ProcessEnv): Promise<ConfiguredServer> {
  // Loaded only here, so that a health check without a configuration does not load the checks of policies.
  const { readSource } = await import("./config/config-loading.ts");
  const source = orFail(readSource(file, env));
  const server = readConfiguredServer(source, source.readFile);
  if (!server.ok) throw new CommandFailure([...server.error, `correct it; ${OTHER_ADDRESS}`]);
  if (server.value.listen.port !== 0) return server.value;
  throw new CommandFailure(`${file}: web.listen: port 0 picks a different port at every start; ${OTHER_ADDRESS}`);
}
