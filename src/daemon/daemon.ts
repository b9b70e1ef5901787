import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { WebConfig } from "../config/schema/web-file.ts";
import { billingMonthOf } from "../rate-limit/billing-month.ts";
import type { Category } from "../rate-limit/limits.ts";
import type { RemediationView } from "../remediation/status/views.ts";
import { recordHistory } from "../web/api/history.ts";
import { epochOf } from "../web/api/live-routes.ts";
import { type Reload, serializeReloads, type WebDeps } from "../web/api/routes.ts";
import { budgetView, nodesView, nodeView, type StatusSnapshot, statusView } from "../web/api/status-views.ts";
import { startWebServer, type WebServer } from "../web/http/server.ts";
import {
  type ActiveConfig,
  activateConfig,
  type ConfigResources,
  closeResources,
  hasSameResources,
  openConfigResources,
} from "./active-config.ts";
import { collectTheSame, startCollection } from "./collection.ts";
import { type DaemonDeps, openRuntime, type Runtime } from "./runtime.ts";

/** The daemon at work. */
export interface Daemon {
  url(): string;
  /**
   * Builds the new configuration beside the old one, and puts it in force only if all of it works. It is what SIGHUP does,
   * and is journalled as such.
   */
  readonly reload: Reload;
  /** What the JSON routes show, now. */
  statusSnapshot(): StatusSnapshot;
  /** What is decided and done, now. */
  remediation(): RemediationView;
  stop(): Promise<void>;
}

/** What is in force. A reload replaces all of it at once, or nothing. */
interface RunningParts {
  activeConfig: ActiveConfig;
  web: WebServer;
  /** The reload under way, or the last one. */
  reloading: Promise<unknown>;
  isStopping: boolean;
}

/** Starts the daemon: transport to the service, store and metrics, web server, collectors; `stop` takes them down in reverse. */
export async function startDaemon(parts: DaemonDeps): Promise<Result<Daemon, readonly string[]>> {
  const read = await parts.readConfig();
  if (!read.ok) return read;
  const { config } = read.value;
  parts.log.setLevel(config.log.level);
  const access = openConfigResources(read.value, parts);
  if (!access.ok) return access;
  const opened = openRuntime(parts, config);
  if (!opened.ok) return opened;
  const foundation = opened.value;
  const reload = serializeReloads(() => {
    const reloading = reloadAndLog(parts, foundation, running, deps);
    running.reloading = reloading;
    return reloading;
  });
  const statusSnapshot = () => statusSnapshotOf(parts, foundation, running.activeConfig);
  const deps = webDepsOf(foundation, statusSnapshot, () => running.activeConfig, reload);
  const web = await listen(access.value, deps, parts, foundation);
  if (!web.ok) {
    foundation.store.close();
    return web;
  }
  const running: RunningParts = {
    web: web.value,
    activeConfig: activateConfig(
      access.value,
      startCollection(access.value, null, parts, foundation),
      [],
      parts,
      foundation,
    ),
    reloading: Promise.resolve(),
    isStopping: false,
  };
  const collectionKept = new AbortController();
  const kept = recordHistory(foundation.history, statusSnapshot, parts, collectionKept.signal);
  parts.log.info({ url: web.value.url, service: config.service.base_url }, "watching");
  return ok({
    url: () => running.web.url,
    async reload() {
      const reloaded = await reload();
      running.activeConfig.remediation.operatorCommands.noteReload(reloaded.ok ? [] : reloaded.error, "SIGHUP: ");
      return reloaded;
    },
    statusSnapshot,
    remediation: () => running.activeConfig.remediation.view,
    async stop() {
      running.isStopping = true;
      collectionKept.abort();
      await kept;
      await running.reloading;
      await running.activeConfig.stop("all");
      await running.web.close();
      foundation.store.close();
    },
  });
}

function webDepsOf(
  foundation: Runtime,
  scene: () => StatusSnapshot,
  assembly: () => ActiveConfig,
  reload: Reload,
): WebDeps {
  return {
    scrape(request) {
      setLiveGauges(foundation, scene());
      return foundation.exposition.scrape(request);
    },
    // The web server listens only once the configuration is in force and the store is open.
    ready: () => ({ ready: true, reasons: [] }),
    reload,
    isTrustedProxy: (address) => assembly().resources.isTrustedProxy(address),
    status: () => statusView(scene()),
    nodes: (query) => nodesView(scene(), query),
    node: (id) => nodeView(scene(), id),
    budget: () => budgetView(scene()),
    fleet: () => assembly().collection.snapshot()?.fleet ?? null,
    eventLog: foundation.eventLog,
    epoch: epochOf(foundation.startedAt),
    history: foundation.history.view,
    remediation: () => assembly().remediation.view,
    commands: () => assembly().remediation.operatorCommands,
    operators: () => assembly().resources.integrations.operators,
  };
}

const statusSnapshotOf = (
  { clock, version }: DaemonDeps,
  { startedAt, rateLimiter }: Runtime,
  assembly: ActiveConfig,
): StatusSnapshot => ({
  version,
  startedAt,
  now: clock.now(),
  monotonic: clock.monotonic(),
  snapshot: assembly.collection.snapshot(),
  plan: assembly.collection.collectorManager.plan(),
  collectors: assembly.collection.collectorManager.collectorHealth(),
  ledger: rateLimiter.ledger,
  month: billingMonthOf(clock.now(), assembly.resources.settings.monthStartsOn),
  clockSkewMs: assembly.collection.client.clockSkewMs(),
});

/** Sets the gauges that are only read off at a scrape. */
function setLiveGauges({ metrics, rateLimiter }: Runtime, { ledger, month, clockSkewMs }: StatusSnapshot): void {
  const { plan } = ledger.limits;
  metrics.set("proxywarden_month_calls", {}, ledger.monthUsed);
  metrics.set("proxywarden_month_calls_limit", {}, plan.callsPerMonth ?? Number.NaN);
  metrics.set("proxywarden_month_reset_timestamp_seconds", {}, month.endMs / SECOND_MS);
  metrics.set("proxywarden_ratelimit_limit", { category: "plan" }, plan.requestsPerMinute ?? Number.NaN);
  for (const [category, limit] of Object.entries(rateLimiter.learnedLimits()) as [Category, number | null][]) {
    metrics.set("proxywarden_ratelimit_learned_limit", { category }, limit ?? Number.NaN);
  }
  metrics.set("proxywarden_service_clock_skew_seconds", {}, (clockSkewMs ?? Number.NaN) / SECOND_MS);
}

async function listen(
  { config, webSettings: terms }: ConfigResources,
  deps: WebDeps,
  { log, clock }: DaemonDeps,
  { metrics }: Runtime,
): Promise<Result<WebServer, readonly string[]>> {
  const listened = await startWebServer({ ...config.web.listen, deps, log, clock, metrics, settings: terms });
  return listened.ok ? listened : fail([`web.listen: ${listened.error}`]);
}

async function reloadAndLog(
  parts: DaemonDeps,
  foundation: Runtime,
  standing: RunningParts,
  deps: WebDeps,
): Promise<Result<void, readonly string[]>> {
  const reloaded = await replaceConfig(parts, foundation, standing, deps);
  foundation.metrics.set("proxywarden_config_last_reload_successful", {}, reloaded.ok ? 1 : 0);
  if (!reloaded.ok) {
    parts.log.error({ problems: reloaded.error }, "the new configuration is refused; the old one stays in force");
    return reloaded;
  }
  const isSame = reloaded.value === "unchanged";
  parts.log.info({}, isSame ? "the configuration is unchanged" : "the new configuration is in force");
  return ok(undefined);
}

const schemeOf = (webConfig: WebConfig | null): string =>
  webConfig?.tls_server_config === undefined ? "http" : "https";

/**
 * Builds all that can fail beside what stands; only then takes the old down and puts the new in its place. A configuration
 * that is the same as before replaces nothing; collectors of which nothing else is asked go on.
 */
async function replaceConfig(
  parts: DaemonDeps,
  foundation: Runtime,
  running: RunningParts,
  deps: WebDeps,
): Promise<Result<"replaced" | "unchanged", readonly string[]>> {
  if (running.isStopping) return fail(["the daemon is stopping"]);
  const read = await parts.readConfig();
  if (!read.ok) return read;
  const { config } = read.value;
  const { config: old } = running.activeConfig.resources;
  const fixed = [
    { key: "state.path", now: old.state.path, wanted: config.state.path },
    { key: "log.format", now: old.log.format, wanted: config.log.format },
    {
      key: "web.web_config_file",
      now: schemeOf(running.activeConfig.resources.webConfig),
      wanted: schemeOf(read.value.webFile?.config ?? null),
    },
  ].filter(({ now, wanted }) => now !== wanted);
  if (fixed.length > 0) {
    return fail(
      fixed.map(({ key, now }) => `${key}: it can't change from ${now} while the daemon runs; restart it for that`),
    );
  }
  const prepared = openConfigResources(read.value, parts);
  if (!prepared.ok) return prepared;
  const access = prepared.value;
  const { activeConfig: assembly, web: oldWeb } = running;
  if (hasSameResources(assembly.resources, access)) {
    await closeResources(access);
    oldWeb.applySettings(access.webSettings);
    return ok("unchanged");
  }
  const changesAddress =
    config.web.listen.host !== old.web.listen.host || config.web.listen.port !== old.web.listen.port;
  const web = changesAddress ? await listen(access, deps, parts, foundation) : ok(running.web);
  if (!web.ok) {
    await closeResources(access);
    return web;
  }
  const keepsCollectors = collectTheSame(assembly.collection.resources, access);
  await assembly.stop(keepsCollectors ? "remediation" : "all");
  parts.log.setLevel(config.log.level);
  if (keepsCollectors) await access.transport.close();
  else foundation.rateLimiter.setLimits(access.settings.limits, access.settings.monthStartsOn);
  const isSameService = config.service.base_url === old.service.base_url;
  const observation = keepsCollectors
    ? assembly.collection
    : startCollection(access, isSameService ? assembly.collection.knownService : null, parts, foundation);
  // Outages and episodes of another service's nodes are over.
  const lasting = isSameService ? assembly.activeNotifications() : [];
  running.activeConfig = activateConfig(access, observation, lasting, parts, foundation);
  running.web = web.value;
  if (!changesAddress) web.value.applySettings(access.webSettings);
  // The request that asked for this may have come through the old server: it closes behind its answer.
  if (changesAddress) void oldWeb.close();
  return ok("replaced");
}
