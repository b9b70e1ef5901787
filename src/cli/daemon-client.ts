import {
  createIntegrationClient,
  INTEGRATION_TIMEOUT_MS,
  type IntegrationFailure,
  type IntegrationRequest,
  userAgentOf,
} from "../api-client/integration-client.ts";
import { parseJson } from "../api-client/json-body.ts";
import type { DurationMs } from "../base/duration.ts";
import type { Result } from "../base/result.ts";
import {
  type KeyPositions,
  type KeyProblem,
  keyPositionsOf,
  locateProblem,
  withoutCredentials,
} from "../config/diagnostics/problem.ts";
import { httpClientSchema } from "../config/schema/http-client.ts";
import { readYaml } from "../config/yaml-reader.ts";
import { type EndpointAccess, integrationAccess, secretReader } from "../daemon/integrations.ts";
import type { TransportResponse } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { systemClock } from "../platform/clock.ts";
import { fileSecret, inlineSecret } from "../platform/secret-file.ts";
import { readTextFile } from "../platform/text-file.ts";
import { NO_SUCH_PAGE } from "../web/http/response.ts";
import { type CommandContext, CommandFailure, orFail } from "./context.ts";
import { withProgress } from "./output/progress.ts";
import { stripControlCharacters } from "./output/text.ts";

/** The options `--url` and `--http-config-file`. */
export interface DaemonAccessOptions {
  readonly url: string;
  /** File with `tls_config`, `basic_auth` and `authorization`. Absent means none of them. */
  readonly httpConfigFile?: string;
}

/** Reads how to reach a server. Throws {@link CommandFailure} if its file is invalid, or a secret can't be read. */
export function readServerAccess(
  { url, httpConfigFile: file }: DaemonAccessOptions,
  env: NodeJS.ProcessEnv,
): EndpointAccess {
  if (file === undefined) return { url };
  const text = readTextFile(file);
  if (!text.ok) throw new CommandFailure(`--http-config-file: ${text.error}`);
  const read = orFail(readYaml(httpClientSchema, { file, text: text.value, env }, () => []));
  return accessWithSecrets(keyPositionsOf(read), "", { url, ...read.value });
}

/** Reads the secrets of a server whose keys begin with `prefix`. Throws {@link CommandFailure} if one can't be read. */
export function accessWithSecrets(
  keys: KeyPositions,
  prefix: string,
  server: Parameters<typeof integrationAccess>[1],
): EndpointAccess {
  const problems: KeyProblem[] = [];
  const access = integrationAccess(prefix, server, secretReader(systemClock, problems), problems);
  if (problems.length === 0) return access;
  throw new CommandFailure(problems.map((problem) => locateProblem(keys, problem)));
}

/** Address of the daemon, and the operator token. */
export interface DaemonConnectionOptions extends DaemonAccessOptions {
  /** File of the operator token. Absent if {@link TOKEN_VARIABLE} may hold it. */
  readonly tokenFile?: string;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The keys that a JSON response must have, and the types of their values. Their content is not checked. */
export type ResponseShape = Readonly<Record<string, "array" | "object" | "string">>;

/** Environment variable that holds the operator token unless `--token-file` is given. */
export const TOKEN_VARIABLE = "PROXYWARDEN_ADMIN_TOKEN";
const QUOTED_CHARS_MAX = 300;

/**
 * Returns the operator token from the file, or else from the environment, or null if there is none. Throws
 * {@link CommandFailure} if it can't be read or is invalid.
 */
export function readToken({ tokenFile }: DaemonConnectionOptions, env: NodeJS.ProcessEnv): string | null {
  if (tokenFile !== undefined) {
    const secret = fileSecret(tokenFile, systemClock);
    if (!secret.ok) throw new CommandFailure(`--token-file: ${secret.error}`);
    return secret.value.value().trim();
  }
  const token = env[TOKEN_VARIABLE]?.trim() ?? "";
  if (/^[\x20-\x7e]*$/.test(token)) return token === "" ? null : token;
  throw new CommandFailure(`${TOKEN_VARIABLE}: must be a single line of ASCII characters`);
}

/** Sends one request to a server. A terminal shows how long the command has waited for it. Never rejects. */
export async function sendRequest(
  access: EndpointAccess,
  request: IntegrationRequest,
  context: Pick<CommandContext, "err" | "stop" | "version">,
  timeoutMs: DurationMs = INTEGRATION_TIMEOUT_MS,
): Promise<Result<TransportResponse, IntegrationFailure>> {
  const agent = userAgentOf(context.version);
  const client = createIntegrationClient({ access, clock: systemClock, agent, timeoutMs });
  const response = await withProgress(
    `waiting for ${withoutCredentials(access.url)}`,
    client.request(request, context.stop),
    context,
  );
  await client.close();
  return response;
}

/**
 * Client of the running daemon. Requests carry the operator token if there is one, or else the credentials of
 * `--http-config-file`. A request that fails rejects with {@link CommandFailure}.
 */
export class DaemonClient {
  readonly #options: DaemonConnectionOptions;
  readonly #context: CommandContext;

  constructor(options: DaemonConnectionOptions, context: CommandContext) {
    this.#options = options;
    this.#context = context;
  }

  /** Reads a route. It needs no operator token, but the web configuration may require a login. */
  get<T>(path: string, shape: ResponseShape): Promise<T> {
    return this.#request<T>({ method: "GET", path }, shape);
  }

  /** Reads a route that returns a list of rows. */
  async rows<T>(path: string): Promise<readonly T[]> {
    return (await this.get<{ readonly data: readonly T[] }>(path, { data: "array" })).data;
  }

  /** Returns the time of the daemon's clock. It may differ from this machine's, as in a demo faster than real time. */
  async now(): Promise<EpochMs> {
    return Date.parse((await this.get<{ readonly now: string }>("/api/v1/status", { now: "string" })).now);
  }

  /** Sends a command. */
  post<T>(path: string, shape: ResponseShape, body: object): Promise<T> {
    return this.#request<T>({ method: "POST", path, body: JSON.stringify(body) }, shape);
  }

  async #request<T>(request: IntegrationRequest, shape: ResponseShape): Promise<T> {
    const { env } = this.#context;
    const token = readToken(this.#options, env);
    const access = readServerAccess(this.#options, env);
    const url = withoutCredentials(this.#options.url);
    const operator = token === null ? {} : { credentials: bearer(token) };
    const response = await sendRequest({ ...access, ...operator }, request, this.#context);
    if (!response.ok) throw new CommandFailure(connectionError(url, request, response.error));
    const json = parseObject(response.value.body);
    if (response.value.status === 200 && json !== null && hasShape(json, shape)) return json as T;
    const given = token === null ? access.credentials && "login" : "token";
    throw new CommandFailure(responseError(url, request, given, response.value, json));
  }
}

const bearer = (token: string) => ({ kind: "authorization", scheme: "Bearer", secret: inlineSecret(token) }) as const;

const hasShape = (json: JsonObject, shape: ResponseShape): boolean =>
  Object.entries(shape).every(([key, type]) => {
    const value = json[key];
    return type === "array" ? Array.isArray(value) : typeof value === type && value !== null;
  });

/** Returns the end of a hint to set `--url`: what a server with TLS needs as well, or nothing without TLS. */
export const trustHint = (url: string): string =>
  url.startsWith("https:") ? ", and the trusted CA with --http-config-file" : "";

/** Returns whether a response may be from a server with TLS to which a request without TLS was sent. */
export const needsTls = (status: number, url: string): boolean => status === 400 && url.startsWith("http:");

/** What to do if {@link needsTls}. */
export const TLS_HINT = "a server with TLS needs https://";

/** Formats why there was no response. A daemon that was reached may have executed the command. */
function connectionError(url: string, { method }: IntegrationRequest, failure: IntegrationFailure): string {
  if (failure.kind === "unreachable") {
    return `no daemon is reachable at ${url} (${failure.message}): start it, or set --url${trustHint(url)}`;
  }
  const note = method === "POST" ? "; the command may still have been executed: check the status" : "";
  return `${url}: ${failure.message}${note}`;
}

/** Formats a response that is not the expected result. `given` is the kind of credentials that were sent, if any. */
function responseError(
  url: string,
  { method }: IntegrationRequest,
  given: "token" | "login" | undefined,
  { status, headers }: TransportResponse,
  json: JsonObject | null,
): string {
  const message =
    typeof json?.message === "string" ? stripControlCharacters(json.message).slice(0, QUOTED_CHARS_MAX) : null;
  if (message === null || status === 200) {
    const hint = needsTls(status, url) ? `; ${TLS_HINT}` : "";
    return `${url} answered ${status}, which is not a proxywarden response: check --url${hint}`;
  }
  if (status === 401 && given === "token") {
    return `${url} rejected the token: it must belong to an operator in web.operators or web.admin_token_file`;
  }
  if (status === 401) {
    return given === undefined
      ? `${url} requires basic auth: pass a file with basic_auth as --http-config-file`
      : `${url} rejected the credentials in --http-config-file: ${message}`;
  }
  if (status === 404 && method === "POST" && message === NO_SUCH_PAGE) {
    return `${url} is read-only: set web.operators or web.admin_token_file in its configuration, and reload`;
  }
  const retryAfter = headers["retry-after"];
  return status === 429 && retryAfter !== undefined ? `${message}; try again in ${retryAfter} s` : message;
}

function parseObject(body: Uint8Array): JsonObject | null {
  const value = parseJson(body);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
