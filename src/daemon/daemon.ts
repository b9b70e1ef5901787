import { type Access, type Assembly, assemble, discard, isSameAccess, prepareAccess } from "./active-config.ts";
import { SECOND_MS } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Category } from "../rate-limit/limits.ts";
import { planMonth } from "../rate-limit/billing-month.ts";
import type { WardenView } from "../remediation/status/views.ts";
import { type AppParts, type Foundation, layFoundation } from "./runtime.ts";
import { observe, observeTheSame } from "./collection.ts";
import { keepHistory } from "../web/api/history.ts";
import { epochOf } from "../web/api/live-routes.ts";
import { type Reload, serialReload } from "../web/api/reload.ts";
import type { WebDeps } from "../web/api/routes.ts";
import { createWeb, type Web } from "../web/http/server.ts";
import { budgetView, nodesView, nodeView, type Scene, statusView } from "../web/api/status-views.ts";

/** The daemon at work. */
export interface App {
  url(): string;
  /**
   * Builds the new configuration beside the old one, and puts it in force only if all of it works. It is what SIGHUP does,
   * and is journalled as such.
   */
  readonly reload: Reload;
  /** What the JSON routes show, now. */
  scene(): Scene;
  /** What is decided and done, now. */
  warden(): WardenView;
  stop(): Promise<void>;
}

/** What is in force. A reload replaces all of it at once, or nothing. */
interface Standing {
  assembly: Assembly;
  web: Web;
  /** The reload under way, or the last one. */
  reloading: Promise<unknown>;
  isStopping: boolean;
}

/** Starts the daemon: transport to the service, store and metrics, web server, collectors; `stop` takes them down in reverse. */
export async function startApp(parts: AppParts): Promise<Result<App, readonly string[]>> {
  const read = await parts.readConfig();
  if (!read.ok) return read;
  const { config } = read.value;
  parts.log.setLevel(config.log.level);
  const access = prepareAccess(read.value, parts);
  if (!access.ok) return access;
  const laid = layFoundation(parts, config);
  if (!laid.ok) return laid;
  const foundation = laid.value;
  const reload = serialReload(() => {
    const reloading = reloadSaid(parts, foundation, standing, deps);
    standing.reloading = reloading;
    return reloading;
  });
  const scene = () => sceneOf(parts, foundation, standing.assembly);
  const deps = depsOf(foundation, scene, () => standing.assembly, reload);
  const web = await listen(access.value, deps, parts, foundation);
  if (!web.ok) {
    foundation.store.close();
    return web;
  }
  const standing: Standing = {
    web: web.value,
    assembly: assemble(access.value, observe(access.value, null, parts, foundation), [], parts, foundation),
    reloading: Promise.resolve(),
    isStopping: false,
  };
  const keeping = new AbortController();
  const kept = keepHistory(foundation.history, scene, parts, keeping.signal);
  parts.log.info({ url: web.value.url, service: config.service.base_url }, "watching");
  return ok({
    url: () => standing.web.url,
    async reload() {
      const reloaded = await reload();
      standing.assembly.warden.orders.noteReload(reloaded.ok ? [] : reloaded.error, "SIGHUP: ");
      return reloaded;
    },
    scene,
    warden: () => standing.assembly.warden.view,
    async stop() {
      standing.isStopping = true;
      keeping.abort();
      await kept;
      await standing.reloading;
      await standing.assembly.stop("all");
      await standing.web.close();
      foundation.store.close();
    },
  });
}

function depsOf(foundation: Foundation, scene: () => Scene, assembly: () => Assembly, reload: Reload): WebDeps {
  return {
    scrape(request) {
      showLive(foundation, scene());
      return foundation.exposition.scrape(request);
    },
    // The web server listens only once the configuration is in force and the store is open.
    ready: () => ({ ready: true, reasons: [] }),
    reload,
    isTrustedProxy: (address) => assembly().access.isTrustedProxy(address),
    status: () => statusView(scene()),
    nodes: (query) => nodesView(scene(), query),
    node: (id) => nodeView(scene(), id),
    budget: () => budgetView(scene()),
    fleet: () => assembly().observation.snapshot()?.fleet ?? null,
    feed: foundation.feed,
    epoch: epochOf(foundation.startedAt),
    history: foundation.history.view,
    warden: () => assembly().warden.view,
    orders: () => assembly().warden.orders,
    operators: () => assembly().access.relations.operators,
  };
}

const sceneOf = ({ clock, version }: AppParts, { startedAt, office }: Foundation, assembly: Assembly): Scene => ({
  version,
  startedAt,
  now: clock.now(),
  monotonic: clock.monotonic(),
  snapshot: assembly.observation.snapshot(),
  plan: assembly.observation.watch.plan(),
  collectors: assembly.observation.watch.collectors(),
  ledger: office.ledger,
  month: planMonth(clock.now(), assembly.access.settings.monthStartsOn),
  clockSkewMs: assembly.observation.client.clockSkewMs(),
});

/** Sets the gauges that are only read off at a scrape. */
function showLive({ metrics, office }: Foundation, { ledger, month, clockSkewMs }: Scene): void {
  const { plan } = ledger.limits;
  metrics.set("proxywarden_month_calls", {}, ledger.monthUsed);
  metrics.set("proxywarden_month_calls_limit", {}, plan.callsPerMonth ?? Number.NaN);
  metrics.set("proxywarden_month_reset_timestamp_seconds", {}, month.endMs / SECOND_MS);
  metrics.set("proxywarden_ratelimit_limit", { category: "plan" }, plan.requestsPerMinute ?? Number.NaN);
  for (const [category, limit] of Object.entries(office.learned()) as [Category, number | null][]) {
    metrics.set("proxywarden_ratelimit_learned_limit", { category }, limit ?? Number.NaN);
  }
  metrics.set("proxywarden_service_clock_skew_seconds", {}, (clockSkewMs ?? Number.NaN) / SECOND_MS);
}

async function listen(
  { config, terms }: Access,
  deps: WebDeps,
  { log, clock }: AppParts,
  { metrics }: Foundation,
): Promise<Result<Web, readonly string[]>> {
  const listened = await createWeb({ ...config.web.listen, deps, log, clock, metrics, terms });
  return listened.ok ? listened : fail([`web.listen: ${listened.error}`]);
}

async function reloadSaid(
  parts: AppParts,
  foundation: Foundation,
  standing: Standing,
  deps: WebDeps,
): Promise<Result<void, readonly string[]>> {
  const reloaded = await replace(parts, foundation, standing, deps);
  foundation.metrics.set("proxywarden_config_last_reload_successful", {}, reloaded.ok ? 1 : 0);
  if (!reloaded.ok) {
    parts.log.error({ problems: reloaded.error }, "the new configuration is refused; the old one stays in force");
    return reloaded;
  }
  const isSame = reloaded.value === "unchanged";
  parts.log.info({}, isSame ? "the configuration is unchanged" : "the new configuration is in force");
  return ok(undefined);
}

/**
 * Builds all that can fail beside what stands; only then takes the old down and puts the new in its place. A configuration
 * that is the same as before replaces nothing; collectors of which nothing else is asked go on.
 */
async function replace(
  parts: AppParts,
  foundation: Foundation,
  standing: Standing,
  deps: WebDeps,
): Promise<Result<"replaced" | "unchanged", readonly string[]>> {
  if (standing.isStopping) return fail(["the daemon is stopping"]);
  const read = await parts.readConfig();
  if (!read.ok) return read;
  const { config } = read.value;
  const { config: old } = standing.assembly.access;
  const fixed = [
    { key: "state.path", now: old.state.path, wanted: config.state.path },
    { key: "log.format", now: old.log.format, wanted: config.log.format },
  ].filter(({ now, wanted }) => now !== wanted);
  if (fixed.length > 0) {
    return fail(
      fixed.map(({ key, now }) => `${key}: it can't change from ${now} while the daemon runs; restart it for that`),
    );
  }
  const prepared = prepareAccess(read.value, parts);
  if (!prepared.ok) return prepared;
  const access = prepared.value;
  const { assembly, web: oldWeb } = standing;
  if (isSameAccess(assembly.access, access)) {
    await discard(access);
    oldWeb.adopt(access.terms);
    return ok("unchanged");
  }
  const moves = config.web.listen.host !== old.web.listen.host || config.web.listen.port !== old.web.listen.port;
  const web = moves ? await listen(access, deps, parts, foundation) : ok(standing.web);
  if (!web.ok) {
    await discard(access);
    return web;
  }
  const keepsCollectors = observeTheSame(assembly.observation.access, access);
  await assembly.stop(keepsCollectors ? "remediation" : "all");
  parts.log.setLevel(config.log.level);
  if (keepsCollectors) await access.transport.close();
  else foundation.office.relimit(access.settings.limits, access.settings.monthStartsOn);
  const isSameService = config.service.base_url === old.service.base_url;
  const observation = keepsCollectors
    ? assembly.observation
    : observe(access, isSameService ? assembly.observation.known : null, parts, foundation);
  // Outages and episodes of another service's nodes are over.
  const lasting = isSameService ? assembly.lasting() : [];
  standing.assembly = assemble(access, observation, lasting, parts, foundation);
  standing.web = web.value;
  if (!moves) web.value.adopt(access.terms);
  // The request that asked for this may have come through the old server: it closes behind its answer.
  if (moves) void oldWeb.close();
  return ok("replaced");
}
