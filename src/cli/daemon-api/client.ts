import { createTransport } from "../../api-client/transport.ts";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { TransportFailure, TransportResponse } from "../../model/ports.ts";
import { createSystemClock } from "../../platform/clock.ts";
import { fileSecret } from "../../platform/secret-file.ts";
import { NO_SUCH_PAGE } from "../../web/http/error-response.ts";
import { type DaemonAccessOptions, readDaemonAccess } from "./connection.ts";

/** Where the daemon is, and who asks it. */
export interface DaemonConnectionOptions extends DaemonAccessOptions {
  /** File of the operator token; absent: the environment may have it. */
  readonly tokenFile?: string;
}

/** What is asked of the daemon. */
export interface DaemonRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** The operator token; null: none is sent. */
  readonly token: string | null;
  readonly body?: object;
}

/** What the daemon answers, before it is looked into. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Environment variable that holds the operator token, where no file is named. */
export const TOKEN_VARIABLE = "PROXYWARDEN_ADMIN_TOKEN";
/** An order is on the disk when it is answered; a disk that needs this long is not well. */
const TIMEOUT_MS: DurationMs = 10 * SECOND_MS;
const QUOTED_CHARS_MAX = 300;

type Environment = Readonly<Record<string, string | undefined>>;

/** The operator token out of the file, or else out of the environment; null: neither has one. The error says what is wrong with it. */
export function readToken({ tokenFile }: DaemonConnectionOptions, env: Environment): Result<string | null, string> {
  if (tokenFile !== undefined) {
    const secret = fileSecret(tokenFile, createSystemClock());
    return secret.ok ? ok(secret.value.value().trim()) : fail(`--token-file: ${secret.error}`);
  }
  const token = env[TOKEN_VARIABLE]?.trim() ?? "";
  if (!/^[\x20-\x7e]*$/.test(token)) return fail(`${TOKEN_VARIABLE}: must be a single line of ASCII characters`);
  return ok(token === "" ? null : token);
}

/**
 * Asks the daemon over HTTP, with the token or else as the options' file says, for an answer of JSON that `isExpected`
 * knows. Never rejects.
 */
export async function requestDaemon<T>(
  options: DaemonAccessOptions,
  env: Environment,
  request: DaemonRequest,
  isExpected: (answer: JsonObject) => answer is JsonObject & T,
): Promise<Result<T, string>> {
  const reach = readDaemonAccess(options, env);
  if (!reach.ok) return fail(reach.error.join("; "));
  const { url } = options;
  const transport = createTransport(reach.value.options);
  const authorization = request.token === null ? reach.value.authorization : `Bearer ${request.token}`;
  const headers: Record<string, string> = {
    accept: "application/json",
    ...(authorization === null ? {} : { authorization }),
    ...(request.body === undefined ? {} : { "content-type": "application/json" }),
  };
  const answer = await transport.request(
    {
      ...{ method: request.method, path: request.path, headers },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    },
    AbortSignal.timeout(TIMEOUT_MS),
  );
  await transport.close();
  if (!answer.ok) return fail(connectionError(url, request, answer.error));
  const json = parseObject(answer.value.body);
  if (answer.value.status === 200 && json !== null && isExpected(json)) return ok(json);
  return fail(responseError(url, request, authorization, answer.value, json));
}

/** Whether an answer is a list of rows. Its rows are taken as they come. */
export const isRowList = <T>(answer: JsonObject): answer is JsonObject & { readonly data: readonly T[] } =>
  Array.isArray(answer.data);

/** What may be printed: what a daemon or a service says must not steer a terminal. */
export const stripControlCharacters = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");

/** A reachable daemon that did not answer may have done it all the same. */
function connectionError(url: string, { method }: DaemonRequest, failure: TransportFailure): string {
  if (failure.kind === "unreachable") {
    const trust = url.startsWith("https:") ? ", and the trusted CA with --http-config-file" : "";
    return `no daemon is reachable at ${url} (${failure.message}): start it, or set --url${trust}`;
  }
  const seen = method === "POST" ? "; the command may still have been executed: check the status" : "";
  const what = failure.kind === "aborted" ? `no answer within ${TIMEOUT_MS / SECOND_MS} s` : failure.message;
  return `${url}: ${what}${seen}`;
}

function responseError(
  url: string,
  { method, token }: DaemonRequest,
  authorization: string | null,
  { status, headers }: TransportResponse,
  json: JsonObject | null,
): string {
  const told =
    typeof json?.message === "string" ? stripControlCharacters(json.message).slice(0, QUOTED_CHARS_MAX) : null;
  if (told === null || status === 200) {
    return `${url} answered ${status}, which is not a proxywarden response: check --url`;
  }
  if (status === 401 && token !== null) {
    return `${url} rejected the token: it must belong to an operator in web.operators or web.admin_token_file`;
  }
  if (status === 401) {
    return authorization === null
      ? `${url} requires basic auth: pass a file with basic_auth as --http-config-file`
      : `${url} rejected the credentials in --http-config-file: ${told}`;
  }
  if (status === 404 && method === "POST" && told === NO_SUCH_PAGE) {
    return `${url} is read-only: set web.operators or web.admin_token_file in its configuration, and reload`;
  }
  return status === 429 ? `${told}; try again in ${headers["retry-after"]} s` : told;
}

function parseObject(body: Uint8Array): JsonObject | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}
