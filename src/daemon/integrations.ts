import { caCertificateProblem, clientCertificateProblem } from "../api-client/certificates.ts";
import {
  type Credentials,
  type IntegrationAccess,
  type IntegrationTls,
  urlOf,
} from "../api-client/integration-client.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { KeyProblem } from "../config/diagnostics/problem.ts";
import type { Config } from "../config/schema/config.ts";
import type { HttpClient, TlsConfig } from "../config/schema/http-client.ts";
import { ADMIN_OPERATOR } from "../config/schema/web.ts";
import type { Clock, ExternalBlockers, Log, Secret } from "../model/ports.ts";
import type { Receiver } from "../model/remediation/notification.ts";
import type { Operator } from "../model/remediation/operator-command.ts";
import { createAlertmanager } from "../notify/alertmanager.ts";
import { createLogReceiver, createWebhook } from "../notify/receivers.ts";
import { fileSecret, inlineSecret, pemFile } from "../platform/secret-file.ts";
import { createExternalBlockers } from "../remediation/evaluation/external-blockers.ts";

/** Prometheus, Alertmanager and webhooks, and the operators who may send commands. */
export interface Integrations {
  readonly externalBlockers: ExternalBlockers;
  readonly receivers: readonly Receiver[];
  /** Operators who may send commands. Without any, the API is read-only. */
  readonly operators: readonly Operator[];
  close(): Promise<void>;
}

/** Reads the file that a configuration key names, with `read`, which is {@link fileSecret} by default. */
export type ReadSecret = (key: string, path: string, read?: typeof fileSecret) => Secret;

/** Stands in for a secret that could not be read. Everything that uses it is discarded. */
const UNREADABLE = inlineSecret("unread");

type Endpoint = HttpClient & { readonly url: string };
/** How to reach a server whose URL is not a secret. */
export type EndpointAccess = IntegrationAccess & { readonly url: string };
interface IntegrationDeps {
  readonly clock: Clock;
  readonly agent: string;
  /** The log to which receivers with `log` write. */
  readonly log: Log;
}

/** Creates a reader of secret files that adds each error to `problems`. */
export const secretReader =
  (clock: Clock, problems: KeyProblem[]): ReadSecret =>
  (key, path, read = fileSecret) => {
    const found = read(path, clock);
    if (!found.ok) problems.push({ key, message: found.error });
    return found.ok ? found.value : UNREADABLE;
  };

/** Returns the secret that a key contains, or that is in the file that `KEY_file` names. One of them is configured. */
export const secretOf = (
  key: string,
  inline: string | undefined,
  file: string | undefined,
  read: ReadSecret,
): Secret => (file === undefined ? inlineSecret(inline!) : read(`${key}_file`, file));

/** Reads the secrets of all integrations. Fails with a problem for each one that can't be used. Opens no connection. */
export function openIntegrations(config: Config, deps: IntegrationDeps): Result<Integrations, readonly KeyProblem[]> {
  const problems: KeyProblem[] = [];
  const secret = secretReader(deps.clock, problems);
  const access = (key: "prometheus" | "alertmanager"): IntegrationAccess | null =>
    config[key] === undefined ? null : integrationAccess(`${key}.`, config[key], secret, problems);
  const [prometheus, alertmanager] = [access("prometheus"), access("alertmanager")];
  const externalBlockers = createExternalBlockers({ ...deps, prometheus, alertmanager });
  const receivers = config.receivers.map((receiver, index) => {
    const { name, webhook_url, webhook_url_file } = receiver;
    if (webhook_url !== undefined || webhook_url_file !== undefined) {
      const key = `receivers[${index}].webhook_url`;
      const url = secretOf(key, webhook_url, webhook_url_file, secret);
      if (isRead(url) && urlOf(url) === null)
        problems.push({ key: `${key}_file`, message: `${webhook_url_file} holds no http or https URL` });
      return createWebhook({ ...deps, name, url });
    }
    if (receiver.log !== undefined) return createLogReceiver(name, deps.log);
    // The loader requires the section alertmanager here.
    return createAlertmanager({ ...deps, name, access: alertmanager!, runbook: config.web.links.runbook });
  });
  const operators = operatorsOf(config, secret);
  // Unreadable files all have the same stand-in.
  if (problems.length === 0) problems.push(...sharedTokens(operators));
  if (problems.length > 0) return fail(problems);
  return ok({
    externalBlockers,
    receivers,
    operators,
    async close() {
      await Promise.all([externalBlockers, ...receivers].map((integration) => integration.close()));
    },
  });
}

function operatorsOf({ web }: Config, secret: ReadSecret): readonly Operator[] {
  const { admin_token_file: admin, operators } = web;
  return [
    ...(admin === undefined ? [] : [{ name: ADMIN_OPERATOR, token: secret("web.admin_token_file", admin) }]),
    ...operators.map(({ name, token_file }, index) => ({
      name,
      token: secret(`web.operators[${index}].token_file`, token_file),
    })),
  ];
}

/** Returns the problems of tokens that several operators share: a shared token identifies none of them. */
function sharedTokens(operators: readonly Operator[]): readonly KeyProblem[] {
  return operators.flatMap(({ name, token }, index) => {
    const first = operators.findIndex((other) => other.token.value().trim() === token.value().trim());
    if (first === index) return [];
    return [{ key: "web.operators", message: `${name} has the same token as ${operators[first]!.name}` }];
  });
}

/** Reads the secrets of an endpoint. Adds each error to `problems`, with `prefix` before the key. */
export function integrationAccess(
  prefix: string,
  endpoint: Endpoint,
  secret: ReadSecret,
  problems: KeyProblem[],
): EndpointAccess {
  const { url, tls_config } = endpoint;
  const credentials = credentialsOf(prefix, endpoint, secret);
  return { url, credentials, tls: tls_config && readTls(`${prefix}tls_config`, tls_config, secret, problems) };
}

function credentialsOf(
  prefix: string,
  { basic_auth, authorization }: Endpoint,
  secret: ReadSecret,
): Credentials | undefined {
  if (basic_auth !== undefined) {
    const { username, password, password_file: file } = basic_auth;
    return { kind: "basic", username, secret: secretOf(`${prefix}basic_auth.password`, password, file, secret) };
  }
  if (authorization === undefined) return undefined;
  const { type, credentials, credentials_file: file } = authorization;
  const read = secretOf(`${prefix}authorization.credentials`, credentials, file, secret);
  return { kind: "authorization", scheme: type, secret: read };
}

/** Reads the files of the TLS configuration at `key`; adds each error to `problems`. */
export function readTls(key: string, config: TlsConfig, secret: ReadSecret, problems: KeyProblem[]): IntegrationTls {
  const file = (name: "ca_file" | "cert_file" | "key_file") =>
    config[name] === undefined ? undefined : secret(`${key}.${name}`, config[name], pemFile);
  const [ca, cert, privateKey] = [file("ca_file"), file("cert_file"), file("key_file")];
  const untrusted = isRead(ca) ? caCertificateProblem(ca.value()) : null;
  if (untrusted !== null) problems.push({ key: `${key}.ca_file`, message: `${config.ca_file} ${untrusted}` });
  const unusable =
    isRead(cert) && isRead(privateKey) ? clientCertificateProblem(cert.value(), privateKey.value()) : null;
  if (unusable !== null) problems.push({ key, message: `cert_file and key_file can't be used: ${unusable}` });
  const { server_name: serverName, insecure_skip_verify: insecureSkipVerify } = config;
  return { ca, cert, key: privateKey, serverName, insecureSkipVerify };
}

const isRead = (secret: Secret | undefined): secret is Secret => secret !== undefined && secret !== UNREADABLE;
