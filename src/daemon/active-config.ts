import { isDeepStrictEqual } from "node:util";
import { createCurrentTransport } from "../api-client/current-transport.ts";
import { type IntegrationTls, tlsOptions } from "../api-client/integration-client.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { CollectionSettings } from "../collectors/collector-manager.ts";
import type { LoadedConfig } from "../config/load.ts";
import { policyRulesOf } from "../config/policy-file.ts";
import type { Config } from "../config/schema/config.ts";
import type { TlsConfig } from "../config/schema/http-client.ts";
import type { WebConfig } from "../config/schema/web-file.ts";
import { neededCollectors } from "../metrics/families/network-families.ts";
import type { Secret, Transport } from "../model/ports.ts";
import type { Notification } from "../model/remediation/notification.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { createNotifier } from "../notify/notifier.ts";
import { inlineSecret } from "../platform/secret-file.ts";
import { compilePolicy, expressionSources, mustCompile } from "../policy/policy.ts";
import type { RemediationRules } from "../remediation/context.ts";
import { type RemediationController, startRemediationController } from "../remediation/controller.ts";
import type { Plan } from "../scheduling/planner.ts";
import { createTrustedProxyCheck, type IsTrustedProxy } from "../web/http/client-address.ts";
import { type LoadedWebSettings, loadWebSettings } from "../web/http/web-settings.ts";
import { type Collection, userAgentOf } from "./collection.ts";
import { collectionSettingsOf } from "./collection-settings.ts";
import { type Integrations, openIntegrations, type ReadSecret, readTls, secretReader } from "./integrations.ts";
import type { DaemonDeps, Runtime } from "./runtime.ts";

/** All of a configuration that can fail to come about, come about: the ways to others, and the keys to them. */
export interface ConfigResources {
  readonly config: Config;
  readonly rules: RemediationRules;
  readonly integrations: Integrations;
  /** On which the web server deals with clients. */
  readonly webSettings: LoadedWebSettings;
  /** Whose `X-Forwarded-For` the web server believes. */
  readonly isTrustedProxy: IsTrustedProxy;
  readonly settings: CollectionSettings;
  readonly secret: Secret;
  readonly transport: Transport;
  /** Null: no web configuration is named. */
  readonly webConfig: WebConfig | null;
}

/** Reads the secrets and certificates that the configuration names. Touches nothing that is in force. */
export function openConfigResources(
  loaded: LoadedConfig,
  { clock, readFile, version }: Pick<DaemonDeps, "clock" | "readFile" | "version">,
): Result<ConfigResources, readonly string[]> {
  const { config } = loaded;
  const { service } = config;
  const integrations = openIntegrations(config, { clock, agent: userAgentOf(version) });
  if (!integrations.ok) return integrations;
  const webSettings = loadWebSettings(loaded.webFile, readFile);
  if (!webSettings.ok) return webSettings;
  const problems: string[] = [];
  const read = secretReader(clock, problems);
  const secret =
    service.api_key_file === undefined
      ? inlineSecret(service.api_key ?? "")
      : read("service.api_key_file", service.api_key_file);
  const tls = serviceTls(service, read, problems);
  if (problems.length > 0) return fail(problems);
  try {
    const transport = serviceTransport(service, tls);
    const rules = { policies: policyRulesOf(loaded.policies), safety: config.safety, intervals: config.time_intervals };
    const settings = settingsOf(config, rules);
    return ok({
      ...{ config, rules, settings, transport },
      webConfig: loaded.webFile?.config ?? null,
      integrations: integrations.value,
      webSettings: webSettings.value,
      isTrustedProxy: createTrustedProxyCheck(config.web.trusted_proxies),
      secret,
    });
  } catch (error) {
    return fail([`service: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** How TLS is spoken with the service: `tls_config`, of which `ca_file` beside it is a part. */
function serviceTls({ ca_file, tls_config }: Config["service"], read: ReadSecret, problems: string[]): IntegrationTls {
  if (tls_config !== undefined) return readTls("service.tls_config", withCa(tls_config, ca_file), read, problems);
  if (ca_file === undefined) return {};
  return readTls("service", { ca_file, insecure_skip_verify: false }, read, problems);
}

const withCa = (tls: TlsConfig, ca_file: string | undefined): TlsConfig =>
  ca_file === undefined ? tls : { ...tls, ca_file };

/** Creates the transport to the service. Each request uses the certificates of that moment. Throws if they can't be read. */
function serviceTransport(service: Config["service"], tls: IntegrationTls): Transport {
  const current = createCurrentTransport();
  const transport = () =>
    current.forOptions({
      baseUrl: service.base_url,
      ...tlsOptions(tls),
      ...(service.proxy === undefined ? {} : { proxy: service.proxy }),
      proxyFromEnvironment: service.proxy_from_environment,
    });
  transport();
  return { request: (request, signal) => transport().request(request, signal), close: current.close };
}

/** What the collectors are to do, by a configuration and its policies. */
export const settingsOf = (config: Config, rules: RemediationRules): CollectionSettings =>
  collectionSettingsOf(config, neededCollectors(new Set(config.export.deny)), new Set(collectorsReadBy(rules)));

/** The collectors without which the policies know nothing. */
function collectorsReadBy({ policies, safety }: RemediationRules): Collector[] {
  const expressions = policies.map(compilePolicy).flatMap(({ match, when, expects }) => [match, when, ...expects]);
  const guard = safety.protected === null ? null : mustCompile(safety.protected);
  // A warden without policies acts on nothing; with any, it wants to know of every node.
  const always: Collector[] = policies.length === 0 ? [] : ["nodes"];
  return [...always, ...expressionSources([...expressions, guard])];
}

/** Whether two configurations are the same in everything that a reload could put in force. */
export const hasSameResources = (one: ConfigResources, other: ConfigResources): boolean =>
  isDeepStrictEqual([one.config, one.rules, one.webConfig], [other.config, other.rules, other.webConfig]);

/** Closes what was prepared and is not put in force. */
export const closeResources = async ({ transport, integrations }: ConfigResources): Promise<void> => {
  await Promise.all([transport.close(), integrations.close()]);
};

/** A configuration at work: what a reload replaces. */
export interface ActiveConfig {
  readonly resources: ConfigResources;
  readonly collection: Collection;
  readonly remediation: RemediationController;
  /** What was told to people and lasts: the next assembly goes on telling it. */
  activeNotifications(): readonly Notification[];
  /** Stops remediation, and with `all` the collectors too. */
  stop(what: "remediation" | "all"): Promise<void>;
}

/** What waits to be told at the end gets so long: a SIGTERM is to end in 10 s, and a POST may have 7 of them. */
const NOTIFICATION_DRAIN_MS: DurationMs = SECOND_MS / 2;

/** Starts remediation and rendering on what is observed; nothing here fails. `lasting`: notices of the assembly before. */
export function activateConfig(
  resources: ConfigResources,
  collection: Collection,
  activeNotifications: readonly Notification[],
  { clock, log, random }: DaemonDeps,
  { metrics, exposition, store, remediationState }: Runtime,
): ActiveConfig {
  const { config, rules, integrations } = resources;
  const { client, knownService: known, collectorManager } = collection;
  const notifier = createNotifier({ receivers: integrations.receivers, clock, random, log, metrics });
  notifier.resume(activeNotifications);
  const options = {
    nodeLabels: config.export.node_labels,
    topCustomers: config.export.top_customers,
    deny: new Set(config.export.deny),
    seriesMax: config.export.series_max,
  };
  const remediation = startRemediationController({
    ...{ rules, remediationState, client, notifier, clock, random, metrics, log },
    serviceUrl: config.service.base_url,
    journal: store.journal,
    inventory: known.collected.inventory,
    externalBlockers: integrations.externalBlockers,
    onRead: collectorManager.markChanged,
  });
  collection.setListener((snapshot, plan) => {
    remediation.update(snapshot, plan);
    const input = {
      snapshot,
      now: clock.monotonic(),
      serviceNowMs: client.serviceTime(clock.monotonic()) ?? clock.now(),
      staleAfterMs: staleAfterMs(plan),
      options,
    };
    exposition.refresh(input).catch((error: unknown) => log.error({ err: error }, "a snapshot could not be rendered"));
  });
  return {
    ...{ resources, collection, remediation },
    activeNotifications: notifier.activeNotifications,
    async stop(what) {
      await Promise.all([remediation.stop(), what === "all" ? collection.stop() : null]);
      if (what === "all") await collection.close();
      await notifier.stop(NOTIFICATION_DRAIN_MS);
      await integrations.close();
    },
  };
}

function staleAfterMs(plan: Plan): Readonly<Record<Collector, DurationMs>> {
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, plan[collector]?.freshMs ?? 0])) as Readonly<
    Record<Collector, DurationMs>
  >;
}
