import { isDeepStrictEqual } from "node:util";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Plan } from "../scheduling/planner.ts";
import type { TlsConfig } from "../config/schema/http-client.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import type { WebConfig } from "../config/schema/web-file.ts";
import { createNotifier } from "../notify/notifier.ts";
import type { Rules } from "../remediation/context.ts";
import { startWarden, type Warden } from "../remediation/controller.ts";
import type { WatchSettings } from "../collectors/collector-manager.ts";
import type { AppParts, Foundation } from "./runtime.ts";
import { neededCollectors } from "../metrics/families/network-families.ts";
import type { Notice } from "../model/remediation/notification.ts";
import type { Secret, Transport } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { agentOf, type Observation } from "./collection.ts";
import { compiled, compilePolicy, sourcesIn } from "../policy/policy.ts";
import { prepareRelations, type ReadSecret, type Relations, readTls, secretReader } from "./integrations.ts";
import { rulesOf, safetyOf, timeIntervalsOf } from "./policy-settings.ts";
import { createCurrentTransport } from "../api-client/current-transport.ts";
import { type PeerTls, tlsOptions } from "../api-client/integration-client.ts";
import { watchSettingsOf } from "./collection-settings.ts";
import { fixedSecret } from "../platform/secret-file.ts";
import { type IsTrustedProxy, trustProxies } from "../web/http/client-address.ts";
import { type PreparedTerms, prepareTerms } from "../web/http/web-settings.ts";

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
  /** Null: no web configuration is named. */
  readonly webConfig: WebConfig | null;
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
      webConfig: loaded.webFile?.config ?? null,
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

/** Creates the transport to the service. Each request uses the certificates of that moment. Throws if they can't be read. */
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

/** Whether two configurations are the same in everything that a reload could put in force. */
export const isSameAccess = (one: Access, other: Access): boolean =>
  isDeepStrictEqual([one.config, one.rules, one.webConfig], [other.config, other.rules, other.webConfig]);

/** Closes what was prepared and is not put in force. */
export const discard = async ({ transport, relations }: Access): Promise<void> => {
  await Promise.all([transport.close(), relations.close()]);
};

/** A configuration at work: what a reload replaces. */
export interface Assembly {
  readonly access: Access;
  readonly observation: Observation;
  readonly warden: Warden;
  /** What was told to people and lasts: the next assembly goes on telling it. */
  lasting(): readonly Notice[];
  /** Stops remediation, and with `all` the collectors too. */
  stop(what: "remediation" | "all"): Promise<void>;
}

/** What waits to be told at the end gets so long: a SIGTERM is to end in 10 s, and a POST may have 7 of them. */
const NOTICES_MS_MAX: DurationMs = SECOND_MS / 2;

/** Starts remediation and rendering on what is observed; nothing here fails. `lasting`: notices of the assembly before. */
export function assemble(
  access: Access,
  observation: Observation,
  lasting: readonly Notice[],
  { clock, log, random }: AppParts,
  { metrics, exposition, store, books }: Foundation,
): Assembly {
  const { config, rules, relations } = access;
  const { client, known, watch } = observation;
  const notifier = createNotifier({ receivers: relations.receivers, clock, random, log, metrics });
  notifier.resume(lasting);
  const options = {
    nodeLabels: config.export.node_labels,
    topCustomers: config.export.top_customers,
    deny: new Set(config.export.deny),
    seriesMax: config.export.series_max,
  };
  const warden = startWarden({
    ...{ rules, books, client, notifier, clock, random, metrics, log },
    serviceUrl: config.service.base_url,
    journal: store.journal,
    inventory: known.sight.inventory,
    obstacles: relations.obstacles,
    onRead: watch.touch,
  });
  observation.attend((snapshot, plan) => {
    warden.see(snapshot, plan);
    const input = {
      snapshot,
      now: clock.monotonic(),
      serviceNowMs: client.serviceTime(clock.monotonic()) ?? clock.now(),
      staleAfterMs: staleAfter(plan),
      options,
    };
    exposition.refresh(input).catch((error: unknown) => log.error({ err: error }, "a snapshot could not be rendered"));
  });
  return {
    ...{ access, observation, warden },
    lasting: notifier.lasting,
    async stop(what) {
      await Promise.all([warden.stop(), what === "all" ? observation.stop() : null]);
      if (what === "all") await observation.close();
      await notifier.stop(NOTICES_MS_MAX);
      await relations.close();
    },
  };
}

function staleAfter(plan: Plan): Readonly<Record<Collector, DurationMs>> {
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, plan[collector]?.freshMs ?? 0])) as Readonly<
    Record<Collector, DurationMs>
  >;
}
