import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { fail, type Result } from "../base/result.ts";
import { decodePercent } from "../base/text.ts";
import type {
  Clock,
  Secret,
  Transport,
  TransportFailure,
  TransportRequest,
  TransportResponse,
} from "../model/ports.ts";
import { startTimeout } from "./timeout.ts";
import { createCurrentTransport, type TransportOptions } from "./transport.ts";

/** How to reach a server other than the management API. Each request uses the current values of its secrets. */
export interface IntegrationAccess {
  /** An http or https URL; a {@link Secret} if the URL itself grants access. */
  readonly url: string | Secret;
  readonly credentials?: Credentials | undefined;
  readonly tls?: IntegrationTls | undefined;
}

/** `basic_auth` or `authorization`, as in the configuration of Prometheus. */
export type Credentials =
  | { readonly kind: "basic"; readonly username: string; readonly secret: Secret }
  | { readonly kind: "authorization"; readonly scheme: string; readonly secret: Secret };

/** `tls_config`, as in the configuration of Prometheus. Secrets are PEM. */
export interface IntegrationTls extends Pick<TransportOptions, "serverName" | "insecureSkipVerify"> {
  readonly ca?: Secret | undefined;
  readonly cert?: Secret | undefined;
  readonly key?: Secret | undefined;
}

/** One request to an integration. */
export interface IntegrationRequest {
  readonly method: "GET" | "POST";
  /** Appended to the path of the URL, or null if the URL is used as it is. */
  readonly path: string | null;
  /** JSON. */
  readonly body?: string;
}

/** Client of a server other than the management API: Prometheus, Alertmanager or a webhook. */
export type IntegrationClient = ReturnType<typeof createIntegrationClient>;

/** Why a request got no response. */
export interface IntegrationFailure {
  readonly kind: TransportFailure["kind"] | "timeout" | "no_url";
  /** For operators; contains no secret. */
  readonly message: string;
}

/** Dependencies of an integration client. */
export interface IntegrationClientDeps {
  readonly access: IntegrationAccess;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
  /** Time limit of a request, response body included. Absent means {@link INTEGRATION_TIMEOUT_MS}. */
  readonly timeoutMs?: DurationMs;
  /** Maximum size of a response's body; by default the same as for the management API. */
  readonly bodyBytesMax?: number;
}

/** User-Agent header of a version of this program. */
export const userAgentOf = (version: string): string => `proxywarden/${version}`;

/** Time limit of a request unless another one is given. */
export const INTEGRATION_TIMEOUT_MS: DurationMs = 10 * SECOND_MS;

/** Creates a client; it connects with the first request. */
export function createIntegrationClient({
  access,
  clock,
  agent,
  timeoutMs = INTEGRATION_TIMEOUT_MS,
  bodyBytesMax,
}: IntegrationClientDeps) {
  let transport: Transport | null = null;
  /**
   * Origin of the last URL. The transport does not read it again, since it must belong to the credentials of the same
   * request.
   */
  let baseUrl = "";

  async function attempt(request: IntegrationRequest, signal: AbortSignal): Promise<Attempt> {
    const url = urlOf(access.url);
    if (url === null)
      return { outcome: fail({ kind: "no_url", message: "its URL is not an http or https URL" }), authorization: null };
    const authorization = authorizationOf(access.credentials, url);
    const limit = startTimeout(clock, timeoutMs, signal);
    baseUrl = url.origin;
    transport ??= createCurrentTransport(() => ({ baseUrl, bodyBytesMax, ...tlsOptions(access.tls ?? {}) }));
    const sent = await transport.request(requestOf(request, url, authorization, agent), limit.signal);
    limit.stop();
    if (sent.ok || !limit.expired()) return { outcome: sent, authorization };
    const message = `no complete response within ${timeoutMs / SECOND_MS} s`;
    return { outcome: fail({ kind: "timeout", message }), authorization };
  }

  /**
   * A GET may have used a connection that the server just closed as idle; after a 401 the credentials may have been
   * renewed.
   */
  function mayRetry({ method }: IntegrationRequest, { outcome, authorization }: Attempt): boolean {
    if (!outcome.ok) return method === "GET" && outcome.error.kind === "reset";
    if (outcome.value.status !== 401) return false;
    if (typeof access.url !== "string") access.url.refresh();
    access.credentials?.secret.refresh();
    const url = urlOf(access.url);
    return url !== null && authorizationOf(access.credentials, url) !== authorization;
  }

  return {
    async close() {
      await transport?.close();
    },
    /** Sends a request. Never rejects. */
    async request(request: IntegrationRequest, signal: AbortSignal) {
      const first = await attempt(request, signal);
      const { outcome } = mayRetry(request, first) ? await attempt(request, signal) : first;
      return outcome;
    },
  };
}

interface Attempt {
  readonly outcome: Result<TransportResponse, IntegrationFailure>;
  /** The Authorization header of the request. */
  readonly authorization: string | null;
}

/** Transport options with the current values of the secrets. */
export const tlsOptions = ({ ca, cert, key, ...others }: IntegrationTls) => ({
  ...others,
  ca: ca?.value(),
  cert: cert?.value(),
  key: key?.value(),
});

/** Returns the URL of a server, or null if it is not an http or https URL. */
export function urlOf(url: string | Secret): URL | null {
  const parsed = URL.parse(typeof url === "string" ? url : url.value());
  return parsed !== null && /^https?:$/.test(parsed.protocol) ? parsed : null;
}

/** The Authorization header, or null if there is none. Without credentials, a user and password in the URL are used. */
function authorizationOf(credentials: Credentials | undefined, url: URL): string | null {
  if (credentials !== undefined) {
    const secret = credentials.secret.value();
    return credentials.kind === "basic"
      ? basicAuthorization(credentials.username, secret)
      : `${credentials.scheme} ${secret}`;
  }
  if (url.username === "") return null;
  return basicAuthorization(decodePercent(url.username), decodePercent(url.password));
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
