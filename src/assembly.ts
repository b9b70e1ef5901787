import { type DurationMs, SECOND_MS } from "./base/duration.ts";
import { fail, ok, type Result } from "./base/result.ts";
import type { Plan } from "./budget/planner.ts";
import type { Config } from "./config/schema.ts";
import { createSight, type Sight, startWatch, type Watch, type WatchSettings } from "./engine/watch.ts";
import type { AppParts, Foundation } from "./foundation.ts";
import { neededCollectors } from "./metrics/families.ts";
import type { WardenMetrics } from "./metrics/warden.ts";
import type { Clock, Secret, Transport } from "./model/ports.ts";
import { COLLECTORS, type Collector, type Snapshot } from "./model/snapshot.ts";
import { authorityProblem } from "./service/certificates.ts";
import { type CallObserver, createClient, type ServiceClient } from "./service/client.ts";
import { createTransport } from "./service/transport.ts";
import { watchSettingsOf } from "./settings.ts";
import { fileSecret, fixedSecret } from "./system/secret.ts";

/** All of a configuration that can fail to come about, come about: the way to the service, and the key to it. */
export interface Access {
  readonly config: Config;
  readonly settings: WatchSettings;
  readonly secret: Secret;
  readonly transport: Transport;
}

/** Reads the secrets and certificates that the configuration names. Touches nothing that is in force. */
export function prepareAccess(
  config: Config,
  clock: Clock,
  readFile: (path: string) => Result<string, string>,
): Result<Access, readonly string[]> {
  const { service } = config;
  const secret =
    service.api_key_file === undefined
      ? ok(fixedSecret(service.api_key ?? ""))
      : fileSecret(service.api_key_file, clock);
  const ca = service.ca_file === undefined ? ok(null) : readFile(service.ca_file);
  if (!secret.ok) return fail([`service.api_key_file: ${secret.error}`]);
  if (!ca.ok) return fail([`service.ca_file: ${ca.error}`]);
  const untrusted = ca.value === null ? null : authorityProblem(ca.value);
  if (untrusted !== null) return fail([`service.ca_file: ${service.ca_file} ${untrusted}`]);
  try {
    const transport = createTransport({
      baseUrl: service.base_url,
      ...(ca.value === null ? {} : { ca: ca.value }),
      ...(service.proxy === undefined ? {} : { proxy: service.proxy }),
    });
    const settings = watchSettingsOf(config, neededCollectors(new Set(config.export.deny)));
    return ok({ config, settings, secret: secret.value, transport });
  } catch (error) {
    return fail([`service: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** A configuration at work: what a reload replaces. */
export interface Assembly {
  readonly access: Access;
  readonly client: ServiceClient;
  readonly sight: Sight;
  readonly watch: Watch;
  /** What was seen last; null before anything was. */
  snapshot(): Snapshot | null;
  stop(): Promise<void>;
}

/** A sample leaves the page when what it says is older than so many planned intervals of its source. */
const STALE_INTERVALS = 3;

/** Puts an access to work. `seen`: what an assembly before it saw of the same service; nothing here fails. */
export function assemble(access: Access, seen: Sight | null, parts: AppParts, foundation: Foundation): Assembly {
  const { clock, log, version } = parts;
  const { office, metrics, exposition, store } = foundation;
  const { config, settings, secret, transport } = access;
  const client = createClient({
    ...{ clock, random: parts.random, office, secret, transport },
    timeoutMs: config.service.timeout,
    observer: observerOf(metrics),
    agent: `proxywarden/${version}`,
  });
  const sight = seen ?? createSight(settings, store.facts, { clock, log, metrics });
  sight.inventory.declareScale(settings.usageScale);
  let latest: Snapshot | null = null;
  const options = {
    nodeLabels: config.export.node_labels,
    topCustomers: config.export.top_customers,
    deny: new Set(config.export.deny),
    seriesMax: config.export.series_max,
  };
  const watch = startWatch({
    ...parts,
    ...{ settings, sight, client, office, metrics, facts: store.facts },
    onSnapshot(snapshot, plan) {
      latest = snapshot;
      const input = {
        snapshot,
        now: clock.monotonic(),
        serviceNowMs: clock.now() + (client.clockSkewMs() ?? 0),
        staleAfterMs: staleAfter(plan),
        options,
      };
      exposition
        .refresh(input)
        .catch((error: unknown) => log.error({ err: error }, "a snapshot could not be rendered"));
    },
  });
  return {
    ...{ access, client, sight, watch },
    snapshot: () => latest,
    async stop() {
      await watch.stop();
      await transport.close();
    },
  };
}

function staleAfter(plan: Plan): Readonly<Record<Collector, DurationMs>> {
  return Object.fromEntries(
    COLLECTORS.map((collector) => [collector, STALE_INTERVALS * (plan[collector]?.intervalMs ?? 0)]),
  ) as Readonly<Record<Collector, DurationMs>>;
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
