import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { fail, type Result } from "../base/result.ts";
import type { Clock, Secret, TransportFailure, TransportRequest, TransportResponse } from "../model/ports.ts";
import { createCurrentTransport } from "./current-transport.ts";
import { startTimeout } from "./timeout.ts";

/** How to reach a server other than the management service. Secrets are re-read for every request. */
export interface IntegrationAccess {
  /** An http or https URL; a {@link Secret} where knowing it is as good as a password. */
  readonly url: string | Secret;
  readonly credentials?: Credentials;
  readonly tls?: IntegrationTls;
}

/** What Prometheus' configuration calls `basic_auth` and `authorization`. */
export type Credentials =
  | { readonly kind: "basic"; readonly username: string; readonly password: Secret }
  | { readonly kind: "authorization"; readonly scheme: string; readonly credentials: Secret };

/** What Prometheus' configuration calls `tls_config`; each secret is a text in PEM. */
export interface IntegrationTls {
  readonly ca?: Secret;
  readonly cert?: Secret;
  readonly key?: Secret;
  readonly serverName?: string;
  readonly insecureSkipVerify?: boolean;
}

/** One request to an integration. */
export interface IntegrationRequest {
  readonly method: "GET" | "POST";
  /** Appended to the path of the URL; null: the URL is used as it is. */
  readonly path: string | null;
  /** JSON. */
  readonly body?: string;
}

/** Client of a server other than the management service: Prometheus, Alertmanager or a webhook. */
export interface IntegrationClient {
  /** One exchange. The error is for people and holds no secret. Never rejects. */
  request(request: IntegrationRequest, signal: AbortSignal): Promise<Result<TransportResponse, string>>;
  close(): Promise<void>;
}

/** Dependencies of an integration client. */
export interface IntegrationClientDeps {
  readonly access: IntegrationAccess;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/** Time limit of a request, response body included. */
export const INTEGRATION_TIMEOUT_MS: DurationMs = 10 * SECOND_MS;

/** Creates a client; it connects with the first request. */
export function createIntegrationClient({ access, clock, agent }: IntegrationClientDeps): IntegrationClient {
  const current = createCurrentTransport();

  async function attempt(request: IntegrationRequest, signal: AbortSignal): Promise<Attempt> {
    const url = urlOf(access.url);
    if (url === null) return { outcome: fail(missingUrlFailure), authorization: null };
    const authorization = authorizationOf(access.credentials, url);
    const limit = startTimeout(clock, INTEGRATION_TIMEOUT_MS, signal);
    const transport = current.forOptions({ baseUrl: url.origin, ...tlsOptions(access.tls ?? {}) });
    const sent = await transport.request(requestOf(request, url, authorization, agent), limit.signal);
    limit.stop();
    const outcome = !sent.ok && limit.expired() ? fail(timeoutFailure) : sent;
    return { outcome, authorization };
  }

  /** A GET may have met a connection that was about to be closed as idle; a password may just have been renewed. */
  function mayRetry({ method }: IntegrationRequest, { outcome, authorization }: Attempt): boolean {
    if (!outcome.ok) return method === "GET" && outcome.error.kind === "reset";
    if (outcome.value.status !== 401) return false;
    if (typeof access.url !== "string") access.url.refresh();
    secretOf(access.credentials)?.refresh();
    const url = urlOf(access.url);
    return url !== null && authorizationOf(access.credentials, url) !== authorization;
  }

  return {
    close: current.close,
    async request(request, signal) {
      const first = await attempt(request, signal);
      const { outcome } = mayRetry(request, first) ? await attempt(request, signal) : first;
      return outcome.ok ? outcome : fail(outcome.error.message);
    },
  };
}

interface Attempt {
  readonly outcome: Result<TransportResponse, Failure>;
  /** The header that it went with. */
  readonly authorization: string | null;
}

interface Failure {
  readonly kind: TransportFailure["kind"] | "timeout" | "no_url";
  readonly message: string;
}

const missingUrlFailure: Failure = { kind: "no_url", message: "its URL is no http or https URL" };
const timeoutFailure: Failure = {
  kind: "timeout",
  message: `no whole answer within ${INTEGRATION_TIMEOUT_MS / SECOND_MS} s`,
};

/** The secrets of a TLS configuration as they are now. */
export const tlsOptions = ({ ca, cert, key, serverName, insecureSkipVerify }: IntegrationTls) => ({
  ...(ca === undefined ? {} : { ca: ca.value() }),
  ...(cert === undefined ? {} : { cert: cert.value() }),
  ...(key === undefined ? {} : { key: key.value() }),
  ...(serverName === undefined ? {} : { serverName }),
  ...(insecureSkipVerify === undefined ? {} : { insecureSkipVerify }),
});

function urlOf(url: string | Secret): URL | null {
  const parsed = URL.parse(typeof url === "string" ? url : url.value());
  return parsed !== null && /^https?:$/.test(parsed.protocol) ? parsed : null;
}

function secretOf(credentials: Credentials | undefined): Secret | null {
  if (credentials === undefined) return null;
  return credentials.kind === "basic" ? credentials.password : credentials.credentials;
}

/** The header Authorization; null: none. A user and password in the URL count where no credentials are given. */
export function authorizationOf(credentials: Credentials | undefined, url: URL): string | null {
  switch (credentials?.kind) {
    case "basic":
      return basicAuthorization(credentials.username, credentials.password.value());
    case "authorization":
      return `${credentials.scheme} ${credentials.credentials.value()}`;
    case undefined:
      return url.username === ""
        ? null
        : basicAuthorization(decodeComponent(url.username), decodeComponent(url.password));
    default:
      return credentials satisfies never;
  }
}

/** Percent-encoding undone; as it stands where it is none. */
function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const basicAuthorization = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`, "utf8").toString("base64")}`;

function requestOf(
  request: IntegrationRequest,
  url: URL,
  authorization: string | null,
  agent: string,
): TransportRequest {
  const { method, path, body } = request;
  const headers = {
    accept: "application/json",
    "user-agent": agent,
    ...(authorization === null ? {} : { authorization }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const target = path === null ? url.pathname + url.search : url.pathname.replace(/\/+$/, "") + path;
  return body === undefined ? { method, path: target, headers } : { method, path: target, headers, body };
}
