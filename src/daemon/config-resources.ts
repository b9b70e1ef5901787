import { isDeepStrictEqual } from "node:util";
import { type IntegrationTls, tlsOptions, userAgentOf } from "../api-client/integration-client.ts";
import { createCurrentTransport } from "../api-client/transport.ts";
import { errorMessage, fail, ok, type Result } from "../base/result.ts";
import type { CollectionSettings } from "../collectors/collector-manager.ts";
import { type ConfigProblem, type KeyProblem, locateProblem } from "../config/diagnostics/problem.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import type { PolicySpec } from "../config/schema/policy.ts";
import type { Safety } from "../config/schema/safety.ts";
import { neededCollectors } from "../metrics/families/network-families.ts";
import type { Log, Secret, Transport } from "../model/ports.ts";
import type { Collector } from "../model/snapshot.ts";
import { silentLog } from "../platform/log.ts";
import { configuredExpressions, expressionSources } from "../policy/policy.ts";
import { effectiveReserve, type Limits, PLANS } from "../rate-limit/limits.ts";
import { createTrustedProxyCheck, type IsTrustedProxy } from "../web/http/client-address.ts";
import { type LoadedWebSettings, loadWebSettings } from "../web/http/web-settings.ts";
import {
  type Integrations,
  openIntegrations,
  type ReadSecret,
  readTls,
  secretOf,
  secretReader,
} from "./integrations.ts";
import type { DaemonDeps } from "./runtime.ts";

/** A configuration, and the secrets, certificates and clients that it names. */
export interface ConfigResources {
  readonly config: Config;
  readonly policies: readonly PolicySpec[];
  readonly settings: CollectionSettings;
  readonly integrations: Integrations;
  readonly webSettings: LoadedWebSettings;
  /** Whether the `X-Forwarded-For` header of a peer is trusted. */
  readonly isTrustedProxy: IsTrustedProxy;
  /** The API key. */
  readonly secret: Secret;
  /** The transport to the service. */
  readonly transport: Transport;
}

interface ConfigResourcesDeps extends Pick<DaemonDeps, "clock" | "version"> {
  /** Absent for commands that send no notifications. */
  readonly log?: Log;
}

/**
 * Reads the secrets and certificates that a configuration names, and creates its clients. Does not affect the active
 * configuration.
 */
export function openConfigResources(
  loaded: LoadedConfig,
  { clock, version, log = silentLog }: ConfigResourcesDeps,
): Result<ConfigResources, readonly ConfigProblem[]> {
  const { config, policies, keys } = loaded;
  const { service } = config;
  const integrations = openIntegrations(config, { clock, log, agent: userAgentOf(version) });
  const webSettings = loadWebSettings(loaded.webFile);
  const problems: KeyProblem[] = [];
  const read = secretReader(clock, problems);
  const secret = secretOf("service.api_key", service.api_key, service.api_key_file, read);
  const tls = serviceTls(service, read, problems);
  const located = (found: readonly KeyProblem[]) => found.map((problem) => locateProblem(keys, problem));
  if (!integrations.ok || !webSettings.ok || problems.length > 0) {
    const ofIntegrations = integrations.ok ? [] : integrations.error;
    return fail([...located([...problems, ...ofIntegrations]), ...(webSettings.ok ? [] : webSettings.error)]);
  }
  try {
    return ok({
      config,
      policies,
      secret,
      settings: collectionSettingsOf(config, policies),
      transport: serviceTransport(service, tls),
      integrations: integrations.value,
      webSettings: webSettings.value,
      isTrustedProxy: createTrustedProxyCheck(config.web.trusted_proxies),
    });
  } catch (error) {
    return fail(located([{ key: "service", message: errorMessage(error) }]));
  }
}

/** Reads `service.tls_config`, and `service.ca_file`, which is short for its `ca_file`. */
function serviceTls(
  { ca_file, tls_config }: Config["service"],
  read: ReadSecret,
  problems: KeyProblem[],
): IntegrationTls {
  const tls = tls_config === undefined ? {} : readTls("service.tls_config", tls_config, read, problems);
  if (ca_file === undefined) return tls;
  return { ...tls, ca: readTls("service", { ca_file, insecure_skip_verify: false }, read, problems).ca };
}

/**
 * Creates the transport to the service. Each request uses the current certificates. Throws if a proxy in the
 * environment is invalid.
 */
const serviceTransport = (service: Config["service"], tls: IntegrationTls): Transport =>
  createCurrentTransport(() => ({
    baseUrl: service.base_url,
    ...tlsOptions(tls),
    ...(service.proxy === undefined ? {} : { proxy: service.proxy }),
    proxyFromEnvironment: service.proxy_from_environment,
  }));

/** Returns the collectors whose data the policies read. If there is any policy, the node list is one of them. */
function collectorsReadBy(policies: readonly PolicySpec[], safety: Safety): Collector[] {
  const sources = expressionSources(configuredExpressions(policies, safety));
  return [...(policies.length === 0 ? [] : (["nodes"] as const)), ...sources];
}

/** Returns whether two configurations are equal in everything that a reload replaces. */
export const hasSameResources = (one: ConfigResources, other: ConfigResources): boolean =>
  isDeepStrictEqual(replacedParts(one), replacedParts(other));

const replacedParts = ({ config, policies, webSettings }: ConfigResources) => [
  config,
  policies,
  webSettings.webFile?.config,
];

/** Closes the clients of a configuration that no leader uses. */
export const closeResources = async ({ transport, integrations }: ConfigResources): Promise<void> => {
  await Promise.all([transport.close(), integrations.close()]);
};

/** The limits of a configuration. */
export const limitsOf = ({ limits }: Config): Limits => ({
  categories: { node_management: limits.node_management, session_monitoring: limits.session_monitoring },
  plan: typeof limits.plan === "string" ? PLANS[limits.plan] : limits.plan,
  reserve: effectiveReserve(limits.reserve),
});

/** Returns the settings of the collectors, which depend on what is exported and what policies read. */
export function collectionSettingsOf(config: Config, policies: readonly PolicySpec[]): CollectionSettings {
  const exported = neededCollectors(config.export.deny);
  const reads = new Set(collectorsReadBy(policies, config.safety));
  const { nodes, details, sessions, stats, hourly } = config.collect;
  const needs = (collector: Collector) => exported.has(collector) || reads.has(collector);
  return {
    schedules: {
      // Details and session bytes are collected for the nodes on the list.
      nodes: needs("nodes") || needs("details") || needs("sessions") ? nodes : null,
      details: needs("details") ? { kind: "every", intervalMs: details.max_age } : null,
      sessions: needs("sessions") ? sessions : null,
      stats: needs("stats") ? stats : null,
      hourly: needs("hourly") ? hourly : null,
    },
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    pageLimit: config.service.page_limit,
    usageScale: config.service.usage_scale ?? null,
    maxMissing: config.safety.trust.maxMissing,
    minInventory: config.safety.trust.minInventory,
    reads,
  };
}
