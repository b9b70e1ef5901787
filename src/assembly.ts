import { type DurationMs, SECOND_MS } from "./base/duration.ts";
import { fail, ok, type Result } from "./base/result.ts";
import type { Plan } from "./budget/planner.ts";
import type { TlsConfig } from "./config/endpoint.ts";
import type { LoadedConfig } from "./config/load.ts";
import type { Config } from "./config/schema.ts";
import { createNotifier } from "./engine/notify.ts";
import type { Rules } from "./engine/ward.ts";
import { startWarden, type Warden } from "./engine/warden.ts";
import { createSight, type Sight, startWatch, type Watch, type WatchSettings } from "./engine/watch.ts";
import type { AppParts, Foundation } from "./foundation.ts";
import { neededCollectors } from "./metrics/families.ts";
import type { WardenMetrics } from "./metrics/warden.ts";
import type { Notice } from "./model/notice.ts";
import type { Secret, Transport } from "./model/ports.ts";
import { COLLECTORS, type Collector, type Snapshot } from "./model/snapshot.ts";
import { compiled, compilePolicy, sourcesIn } from "./policy/policy.ts";
import { prepareRelations, type ReadSecret, type Relations, readTls, secretReader } from "./relations.ts";
import { rulesOf, safetyOf, timeIntervalsOf } from "./rules.ts";
import { type CallObserver, createClient, type ServiceClient } from "./service/client.ts";
import { createCurrentTransport } from "./service/current-transport.ts";
import { type PeerTls, tlsOptions } from "./service/peer.ts";
import { createServiceClock, type ServiceClock } from "./service/serviceclock.ts";
import { watchSettingsOf } from "./settings.ts";
import { fixedSecret } from "./system/secret.ts";
import { type IsTrustedProxy, trustProxies } from "./web/client.ts";
import { type PreparedTerms, prepareTerms } from "./web/terms.ts";

/** All of a configuration that can fail to come about, come about: the ways to others, and the keys to them. */
export interface Access {
  readonly config: Config;
  readonly rules: Rules;
  readonly relations: Relations;
  /** On which the web server deals with clients. */
  readonly terms: PreparedTerms;
  /** Whose `X-Forwarded-For` the web server believes. */
  readonly isTrustedProxy: IsTrustedProxy;
  readonly settings: WatchSettings;
  readonly secret: Secret;
  readonly transport: Transport;
}

/** Reads the secrets and certificates that the configuration names. Touches nothing that is in force. */
export function prepareAccess(
  loaded: LoadedConfig,
  { clock, readFile, version }: Pick<AppParts, "clock" | "readFile" | "version">,
): Result<Access, readonly string[]> {
  const { config } = loaded;
  const { service } = config;
  const relations = prepareRelations(config, { clock, agent: agentOf(version) });
  if (!relations.ok) return relations;
  const terms = prepareTerms(loaded.webFile, readFile);
  if (!terms.ok) return terms;
  const problems: string[] = [];
  const read = secretReader(clock, problems);
  const secret =
    service.api_key_file === undefined
      ? fixedSecret(service.api_key ?? "")
      : read("service.api_key_file", service.api_key_file);
  const tls = serviceTls(service, read, problems);
  if (problems.length > 0) return fail(problems);
  try {
    const transport = serviceTransport(service, tls);
    const rules = { policies: rulesOf(loaded), safety: safetyOf(config), intervals: timeIntervalsOf(config) };
    const settings = settingsOf(config, rules);
    return ok({
      ...{ config, rules, settings, transport },
      relations: relations.value,
      terms: terms.value,
      isTrustedProxy: trustProxies(config.web.trusted_proxies),
      secret,
    });
  } catch (error) {
    return fail([`service: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** How TLS is spoken with the service: `tls_config`, of which `ca_file` beside it is a part. */
function serviceTls({ ca_file, tls_config }: Config["service"], read: ReadSecret, problems: string[]): PeerTls {
  if (tls_config !== undefined) return readTls("service.tls_config", withCa(tls_config, ca_file), read, problems);
  if (ca_file === undefined) return {};
  return readTls("service", { ca_file, insecure_skip_verify: false }, read, problems);
}

const withCa = (tls: TlsConfig, ca_file: string | undefined): TlsConfig =>
  ca_file === undefined ? tls : { ...tls, ca_file };

/** The way to the service, by the certificates as they are when a request is sent. Throws where it can't be. */
function serviceTransport(service: Config["service"], tls: PeerTls): Transport {
  const current = createCurrentTransport();
  const transport = () =>
    current.by({
      baseUrl: service.base_url,
      ...tlsOptions(tls),
      ...(service.proxy === undefined ? {} : { proxy: service.proxy }),
      proxyFromEnvironment: service.proxy_from_environment,
    });
  transport();
  return { request: (request, signal) => transport().request(request, signal), close: current.close };
}

const agentOf = (version: string): string => `proxywarden/${version}`;

/** What the collectors are to do, by a configuration and its policies. */
export const settingsOf = (config: Config, rules: Rules): WatchSettings =>
  watchSettingsOf(config, neededCollectors(new Set(config.export.deny)), new Set(collectorsOf(rules)));

/** The collectors without which the policies know nothing. */
function collectorsOf({ policies, safety }: Rules): Collector[] {
  const expressions = policies.map(compilePolicy).flatMap(({ match, when, expects }) => [match, when, ...expects]);
  const guard = safety.protected === null ? null : compiled(safety.protected);
  // A warden without policies acts on nothing; with any, it wants to know of every node.
  const always: Collector[] = policies.length === 0 ? [] : ["nodes"];
  return [...always, ...sourcesIn([...expressions, guard])];
}

/** A configuration at work: what a reload replaces. */
export interface Assembly {
  readonly access: Access;
  readonly client: ServiceClient;
  readonly known: Known;
  readonly watch: Watch;
  readonly warden: Warden;
  /** What was told to people and lasts: the next assembly goes on telling it. */
  lasting(): readonly Notice[];
  /** What was seen last; null before anything was. */
  snapshot(): Snapshot | null;
  stop(): Promise<void>;
}

/** What waits to be told at the end gets so long: a SIGTERM is to end in 10 s, and a POST may have 7 of them. */
const NOTICES_MS_MAX: DurationMs = SECOND_MS / 2;

/** What is known of a service. */
export interface Known {
  readonly sight: Sight;
  readonly serviceClock: ServiceClock;
}

/** What an assembly leaves to the next. */
export interface Legacy {
  /** Of the same service; null: nothing, or it was of another. */
  readonly known: Known | null;
  readonly lasting: readonly Notice[];
}

/** Puts an access to work; nothing here fails. */
export function assemble(access: Access, legacy: Legacy, parts: AppParts, foundation: Foundation): Assembly {
  const { clock, log, version, random } = parts;
  const { office, metrics, exposition, store, books } = foundation;
  const { config, rules, relations, settings, secret, transport } = access;
  const sight = legacy.known?.sight ?? createSight(settings, store.facts, { clock, log, metrics });
  const serviceClock = legacy.known?.serviceClock ?? createServiceClock();
  const client = createClient({
    ...{ clock, random, office, secret, transport, serviceClock },
    timeoutMs: config.service.timeout,
    observer: observerOf(metrics),
    agent: agentOf(version),
  });
  const notifier = createNotifier({ receivers: relations.receivers, clock, random, log, metrics });
  notifier.resume(legacy.lasting);
  sight.inventory.declareScale(settings.usageScale);
  let latest: Snapshot | null = null;
  const options = {
    nodeLabels: config.export.node_labels,
    topCustomers: config.export.top_customers,
    deny: new Set(config.export.deny),
    seriesMax: config.export.series_max,
  };
  const warden = startWarden({
    ...{ rules, books, client, notifier, clock, random, metrics, log },
    journal: store.journal,
    inventory: sight.inventory,
    obstacles: relations.obstacles,
    onRead: () => watch.touch(),
  });
  const watch: Watch = startWatch({
    ...parts,
    ...{ settings, sight, client, office, metrics, facts: store.facts },
    onSnapshot(snapshot, plan) {
      latest = snapshot;
      warden.see(snapshot, plan);
      const input = {
        snapshot,
        now: clock.monotonic(),
        serviceNowMs: client.serviceTime(clock.monotonic()) ?? clock.now(),
        staleAfterMs: staleAfter(plan),
        options,
      };
      exposition
        .refresh(input)
        .catch((error: unknown) => log.error({ err: error }, "a snapshot could not be rendered"));
    },
  });
  return {
    ...{ access, client, watch, warden },
    known: { sight, serviceClock },
    lasting: notifier.lasting,
    snapshot: () => latest,
    async stop() {
      await Promise.all([warden.stop(), watch.stop()]);
      await notifier.stop(NOTICES_MS_MAX);
      await Promise.all([transport.close(), relations.close()]);
    },
  };
}

function staleAfter(plan: Plan): Readonly<Record<Collector, DurationMs>> {
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, plan[collector]?.freshMs ?? 0])) as Readonly<
    Record<Collector, DurationMs>
  >;
}

function observerOf(metrics: WardenMetrics): CallObserver {
  return {
    called(endpoint, code, tookMs) {
      metrics.inc("proxywarden_api_requests_total", { endpoint, code });
      metrics.observe("proxywarden_api_request_duration_seconds", { endpoint }, tookMs / SECOND_MS);
    },
    stated(category, limit, remaining, resetEpochSeconds) {
      metrics.set("proxywarden_ratelimit_limit", { category }, limit);
      metrics.set("proxywarden_ratelimit_remaining", { category }, remaining);
      metrics.set("proxywarden_ratelimit_reset_timestamp_seconds", { category }, resetEpochSeconds ?? Number.NaN);
    },
    refused: (category) => metrics.inc("proxywarden_ratelimit_exceeded_total", { category }),
  };
}
