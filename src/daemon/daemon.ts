import { formatDuration } from "../base/duration.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema/config.ts";
import type { WebFile } from "../config/web-file.ts";
import { runInSlices } from "../platform/event-loop.ts";
import type { RemediationView } from "../remediation/status/views.ts";
import type { EventLog } from "../web/api/event-log.ts";
import { recordHistory } from "../web/api/history.ts";
import { nodesView, nodeView } from "../web/api/node-views.ts";
import {
  budgetView,
  type LeaderView,
  type LinksView,
  type StatusSnapshot,
  statusView,
  summarizeAges,
} from "../web/api/status-views.ts";
import type { Reload, WebDeps } from "../web/http/route.ts";
import { startWebServer, type WebServer } from "../web/http/server.ts";
import { type ConfigResources, closeResources, hasSameResources, openConfigResources } from "./config-resources.ts";
import { setLeaderGauges } from "./leader.ts";
import type { LeadershipTerm } from "./leadership-term.ts";
import { RoleSwitch } from "./role-switch.ts";
import { type DaemonDeps, openRuntime, type Runtime } from "./runtime.ts";
import { SHUTDOWN_BUDGET, shutDown } from "./shutdown.ts";

/**
 * Starts the daemon: secrets and clients, state, web server, collectors, remediation. If one of these fails, the later
 * ones are not started. The error lists every problem with it.
 */
export async function startDaemon(loaded: LoadedConfig, deps: DaemonDeps): Promise<Result<Daemon, readonly string[]>> {
  deps.log.setLevel(loaded.config.log.level);
  const resources = openConfigResources(loaded, deps);
  if (!resources.ok) return fail(resources.error.map(formatProblem));
  const opened = await openRuntime(deps, loaded.config);
  if (!opened.ok) return opened;
  const { runtime, term } = opened.value;
  const daemon = new Daemon(runtime);
  const started = await daemon.start(resources.value, term);
  return started.ok ? ok(daemon) : started;
}

/** The running daemon. */
export class Daemon {
  /**
   * Resolves with the reason if it turns out after the start that the state can't be used. The daemon should then be
   * stopped. Null if the daemon shares its state with no other.
   */
  readonly unusable: Promise<string> | null;
  /** Recent decisions, actions and operator commands. */
  readonly eventLog: EventLog;
  readonly #runtime: Runtime;
  readonly #roleSwitch: RoleSwitch;
  #web!: WebServer;
  #configRejectedAt: StatusSnapshot["configRejectedAt"] = null;
  /** The current reload, or the last one. Never rejects. */
  #reloading: Promise<unknown> = Promise.resolve();
  /** The reload that waits for the current one. */
  #nextReload: ReturnType<Reload> | null = null;
  readonly #stop = new AbortController();
  #history: Promise<unknown> = Promise.resolve();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#roleSwitch = new RoleSwitch(runtime);
    this.unusable = runtime.shared?.unusable ?? null;
    this.eventLog = runtime.eventLog;
  }

  /**
   * Listens, and leads or stands by. `term` is that of a daemon that is alone, or null if the daemon shares its state
   * and stands by.
   */
  async start(resources: ConfigResources, term: LeadershipTerm | null): Promise<Result<void, readonly string[]>> {
    const { config } = resources;
    const web = await this.#listen(resources);
    if (!web.ok) {
      await (term?.store ?? this.#runtime.shared)?.close();
      return web;
    }
    this.#web = web.value;
    // The event loop has not turned since the server began to listen, so no connection precedes the configuration.
    if (term !== null) this.#roleSwitch.lead(resources, term);
    else await this.#roleSwitch.standBy(resources, this.#runtime.shared!);
    this.#history = recordHistory(this.#runtime.history, () => this.statusSnapshot(), this.#runtime, this.#stop.signal);
    this.#runtime.log.info({ url: this.#web.url, service: config.service.base_url }, "daemon started");
    return ok(undefined);
  }

  url(): string {
    return this.#web.url;
  }

  /**
   * Loads the configuration again and activates it; an invalid configuration is rejected, and the previous one stays
   * active. A leader journals the result, as that of a SIGHUP.
   */
  reload(): ReturnType<Reload> {
    return this.#reloadAndJournal(null, "SIGHUP: ");
  }

  async #reloadAndJournal(operator: string | null, origin: string): ReturnType<Reload> {
    const reloaded = await this.#requestReload();
    const { active } = this.#roleSwitch;
    const isStopped = !reloaded.ok && this.#stop.signal.aborted;
    if (active.isLeading && !isStopped) active.noteReload(reloaded.ok ? [] : reloaded.error, operator, origin);
    return reloaded;
  }

  /** Returns what the JSON routes show now. */
  statusSnapshot(): StatusSnapshot {
    const { clock, version, startedAt } = this.#runtime;
    const { active } = this.#roleSwitch;
    return {
      version,
      startedAt,
      now: clock.now(),
      monotonic: clock.monotonic(),
      ...active.collected(),
      configRejectedAt: this.#configRejectedAt,
    };
  }

  /** Returns the current state of remediation. */
  remediation(): RemediationView {
    return this.#roleSwitch.active.view;
  }

  /** Stops the daemon after SIGTERM or SIGINT, within {@link SHUTDOWN_BUDGET}. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#history;
    await shutDown(this.#reloading, this.#roleSwitch, () => this.#web, this.#runtime);
  }

  /**
   * Reloads one at a time. A request during a reload waits for the next one, which reads the files again. All waiting
   * requests share it.
   */
  #requestReload(): ReturnType<Reload> {
    this.#nextReload ??= this.#reloading.then(() => {
      this.#nextReload = null;
      const reloading = this.#reloadAndLog();
      this.#reloading = reloading.catch(() => undefined);
      return reloading;
    });
    return this.#nextReload;
  }

  async #reloadAndLog(): Promise<Result<void, readonly string[]>> {
    const reloaded = await this.#replaceConfig();
    if (!reloaded.ok && this.#stop.signal.aborted) {
      this.#runtime.log.info({}, "reload stopped");
      return reloaded;
    }
    this.#runtime.metrics.set("proxywarden_config_last_reload_successful", {}, reloaded.ok ? 1 : 0);
    this.#configRejectedAt = reloaded.ok ? null : this.#runtime.clock.now();
    if (!reloaded.ok) {
      this.#runtime.log.error({ problems: reloaded.error }, "configuration rejected; the previous one stays active");
      return reloaded;
    }
    const isSame = reloaded.value === "unchanged";
    this.#runtime.log.info({}, isSame ? "configuration unchanged" : "configuration reloaded");
    return ok(undefined);
  }

  /**
   * Opens the new configuration while the old one is active, and replaces the old one only if all of the new one opens.
   * An equal configuration replaces nothing; collectors with the same settings keep running.
   */
  async #replaceConfig(): Promise<Result<"replaced" | "unchanged", readonly string[]>> {
    const read = await this.#runtime.readConfig(this.#stop.signal);
    if (this.#stop.signal.aborted) return fail(["the daemon is stopping"]);
    if (!read.ok) return read;
    const { config } = read.value;
    const { config: old, webSettings } = this.#roleSwitch.active.resources;
    const fixed = fixedKeys(old, webSettings.webFile);
    const requested = fixedKeys(config, read.value.webFile);
    const changed = Object.entries(fixed).filter(([key, now]) => now !== requested[key]);
    if (changed.length > 0)
      return fail(changed.map(([key, now]) => `${key}: can't change from ${now} ${NEEDS_RESTART}`));
    const opened = openConfigResources(read.value, this.#runtime);
    if (!opened.ok) return fail(opened.error.map(formatProblem));
    const resources = opened.value;
    if (hasSameResources(this.#roleSwitch.active.resources, resources)) {
      await closeResources(resources);
      this.#web.applySettings(resources.webSettings);
      return ok("unchanged");
    }
    const { host, port } = config.web.listen;
    const movesWeb = host !== old.web.listen.host || port !== old.web.listen.port;
    const web = movesWeb ? await this.#listen(resources) : ok(this.#web);
    if (!web.ok) {
      await closeResources(resources);
      // The old and the new address may overlap, as 0.0.0.0 and 127.0.0.1 do.
      const isOwnPort = port === old.web.listen.port && web.error.some((problem) => problem.includes("EADDRINUSE"));
      return isOwnPort ? fail([`web.listen: the host can't change on the same port ${NEEDS_RESTART}`]) : web;
    }
    await this.#roleSwitch.activate(resources);
    const oldWeb = this.#web;
    this.#web = web.value;
    // The request for this reload may have come through the old server, which closes after its response.
    if (movesWeb) void oldWeb.close(SHUTDOWN_BUDGET.webMs);
    else this.#web.applySettings(resources.webSettings);
    return ok("replaced");
  }

  async #listen(resources: ConfigResources): Promise<Result<WebServer, readonly string[]>> {
    const { config, webSettings: settings } = resources;
    const deps = this.#webDeps();
    const listened = await startWebServer({ ...this.#runtime, ...config.web.listen, deps, settings });
    return listened.ok ? listened : fail([`web.listen: ${listened.error}`]);
  }

  #webDeps(): WebDeps {
    const runtime = this.#runtime;
    return {
      scrape: (request) => {
        runtime.metrics.set("proxywarden_leader", {}, this.#roleSwitch.isLeading() ? 1 : 0);
        const { active } = this.#roleSwitch;
        if (active.isLeading) setLeaderGauges(runtime.metrics, this.statusSnapshot(), active.term.rateLimiter);
        return runtime.exposition.scrape(request);
      },
      reload: (operator) => this.#reloadAndJournal(operator, ""),
      isTrustedProxy: (address) => this.#roleSwitch.active.resources.isTrustedProxy(address),
      status: () => this.#status(),
      nodes: (query) => nodesView(this.statusSnapshot(), query),
      node: (id) => nodeView(this.statusSnapshot(), id),
      budget: () => budgetView(this.statusSnapshot()),
      fleet: () => this.#roleSwitch.active.collected().snapshot?.fleet ?? null,
      eventLog: runtime.eventLog,
      epoch: String(runtime.startedAt),
      history: runtime.history.view,
      remediation: () => this.#roleSwitch.active.view,
      execute: (command) => this.#roleSwitch.active.execute(command),
      operators: () => this.#roleSwitch.active.resources.integrations.operators,
    };
  }

  async #status(): Promise<object> {
    const statusSnapshot = this.statusSnapshot();
    await runInSlices(summarizeAges(statusSnapshot), this.#runtime.clock);
    return {
      ...statusView(statusSnapshot),
      leader: leaderView(this.#roleSwitch),
      links: {
        runbook: null,
        grafana: null,
        ...this.#roleSwitch.active.resources.config.web.links,
      } satisfies LinksView,
    };
  }
}

const NEEDS_RESTART = "while the daemon runs; restart the daemon to change it";

/** Returns the values of the keys that can't change while the daemon runs. */
const fixedKeys = ({ state, log }: Config, webFile: WebFile | null): Readonly<Record<string, string>> => ({
  "state.path": state.path ?? "none",
  "state.postgres": databaseName(state.postgres),
  "log.format": log.format,
  "web.web_config_file": webFile?.config.tls_server_config === undefined ? "http" : "https",
});

function databaseName(postgres: Config["state"]["postgres"]): string {
  if (postgres === undefined) return "none";
  const { url_file: file, schema, lease, instance = "unnamed", public_url: url = "none" } = postgres;
  return `${file} (schema ${schema}, lease ${formatDuration(lease)}, instance ${instance}, public_url ${url})`;
}

function leaderView(roleSwitch: RoleSwitch): LeaderView {
  if (roleSwitch.leadership === null) return null;
  const isThis = roleSwitch.isLeading();
  // A leader whose lease has ended does not know whether another daemon leads by now.
  const known = roleSwitch.active.isLeading && !isThis ? null : roleSwitch.leadership.leader();
  const { holder = null, url = null } = known ?? {};
  // Another daemon wrote the URL, so it is not trusted to be a link.
  const link = url !== null && /^https?:\/\//.test(url) ? url : null;
  return { is_this: isThis, name: holder, url: link };
}
