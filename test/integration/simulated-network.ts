import { onTestFinished } from "vitest";
import { ok, type Result } from "../../src/base/result.ts";
import { parseConfig } from "../../src/cli/config/config-loading.ts";
import { readTextFile } from "../../src/cli/context.ts";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import type { DaemonDeps } from "../../src/daemon/runtime.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite.ts";
import type { Clock } from "../../src/model/ports.ts";
import type { FaultKind, Scenario } from "../../src/model/scenario.ts";
import { createSystemClock } from "../../src/platform/clock.ts";
import { createCron } from "../../src/platform/cron.ts";
import { createScaledClock } from "../../src/simulator/clock.ts";
import { defaultScenario, SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { startServer } from "../../src/simulator/http/server.ts";
import { createService, type SimulatedService } from "../../src/simulator/http/service.ts";
import { createRecordingLog } from "../harness/virtual-daemon.ts";
import { type MetricsPage, parseMetricsPage } from "./metrics-page.ts";

/** A configuration in sections, as its file has them: mappings, and lists. */
export type ConfigSections = Readonly<Record<string, Readonly<Record<string, unknown>> | readonly unknown[]>>;

/** What a configuration says unless a test says otherwise: everything every few seconds, so that little has to pass. */
export function configText(serviceUrl: string, sections: ConfigSections = {}): string {
  const usual: ConfigSections = {
    service: { base_url: serviceUrl, usage_scale: "ratio", timeout: "5s" },
    limits: { plan: "enterprise" },
    collect: {
      nodes: { every: "5s" },
      details: { max_age: "1m" },
      sessions: { every: "5s" },
      stats: { every: "5s" },
    },
    web: { listen: "127.0.0.1:0" },
    // With a new journal no action is possible before the first share of it: here a second.
    safety: { max_actions: { amount: 600, per: "10m" } },
  };
  const names = new Set([...Object.keys(usual), ...Object.keys(sections)]);
  const merged = Object.fromEntries(
    [...names].map((name) => {
      const section = sections[name];
      return [name, Array.isArray(section) ? section : { ...usual[name], ...section }] as const;
    }),
  );
  if (!("api_key_file" in merged.service!)) merged.service = { api_key: SIMULATION_KEY, ...merged.service };
  // What is JSON is YAML.
  return JSON.stringify(merged, null, 2);
}

/** The simulated service, over HTTP. */
export interface TestNetwork {
  readonly clock: Clock;
  readonly service: SimulatedService;
  readonly url: string;
  /** From now on the fault strikes every request, or those that match; null: none does. */
  setFault(fault: FaultKind | null, match?: string): void;
}

interface TestNetworkOptions {
  readonly scenario?: Partial<Scenario>;
  /** How much faster than real time passes; 60 unless said: a minute in a second. */
  readonly speed?: number;
  /** Any free one unless said. */
  readonly port?: number;
}

const SPEED = 60;
/** A fleet that a page of the list holds, and whose details are read within a minute. */
export const NODES = 40;
const SESSIONS = 200;

/** Starts the simulated service; it ends with the test. */
export async function startNetwork({
  scenario = {},
  speed = SPEED,
  port = 0,
}: TestNetworkOptions = {}): Promise<TestNetwork> {
  const clock = createScaledClock(createSystemClock(), speed);
  const service = createService(
    {
      ...defaultScenario,
      nodes: NODES,
      sessions: SESSIONS,
      service: { ...defaultScenario.service, plan: "enterprise", listEndedSessions: true },
      ...scenario,
    },
    clock.now(),
  );
  const server = await startServer(service, clock, { port });
  onTestFinished(() => server.close());
  return {
    clock,
    service,
    url: server.url,
    setFault(fault, match) {
      const always = { afterMs: 0, forMs: Number.POSITIVE_INFINITY };
      service.setFaults(fault === null ? [] : [{ ...always, fault, ...(match === undefined ? {} : { match }) }]);
    },
  };
}

/** A daemon in this process. */
export interface TestDaemon {
  readonly app: Daemon;
  readonly log: ReturnType<typeof createRecordingLog>;
  /** Puts another text in the place of the configuration file; a reload reads it. */
  configure(text: string): void;
  /** Asks a route. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Scrapes, and looks whether the daemon says it is healthy. Throws where either is not as it should be. */
  scrape(): Promise<MetricsPage>;
}

/** Starts a daemon, on a store in memory unless another is given; it ends with the test. */
export async function startTestDaemon(
  clock: Clock,
  firstConfig: string,
  opened: DaemonDeps["openStore"] = () => ok(createMemoryStateStore()),
): Promise<TestDaemon> {
  const log = createRecordingLog();
  let text = firstConfig;
  const started = await startDaemon({
    clock,
    cron: createCron(),
    random: Math.random,
    log: { ...log, setLevel() {} },
    version: "0.0.0-test",
    readConfig() {
      const judged = parseConfig("proxywarden.yaml", text, {});
      return judged.ok ? judged : { ok: false, error: judged.error.map(formatProblem) };
    },
    readFile: readTextFile,
    openStore: opened,
    createMemoryStore: createMemoryStateStore,
  });
  const app = valueOrThrow(started);
  onTestFinished(() => app.stop());
  const ask: TestDaemon["ask"] = (path, init) => fetch(app.url() + path, init);
  return {
    app,
    log,
    configure(next) {
      text = next;
    },
    ask,
    async scrape() {
      const [metrics, health] = await Promise.all([ask("/metrics"), ask("/-/healthy")]);
      if (metrics.status !== 200 || health.status !== 200) {
        throw new Error(`/metrics answered ${metrics.status}, /-/healthy ${health.status}`);
      }
      await health.arrayBuffer();
      return parseMetricsPage(await metrics.text());
    },
  };
}

/** A daemon that watches a simulated network. */
export async function startDaemonOnNetwork(options: TestNetworkOptions & { readonly config?: ConfigSections } = {}) {
  const network = await startNetwork(options);
  const daemon = await startTestDaemon(network.clock, configText(network.url, options.config));
  return { network, daemon };
}

function valueOrThrow<T>(result: Result<T, readonly string[]>): T {
  if (!result.ok) throw new Error(result.error.join("\n"));
  return result.value;
}

/** Nodes that the page knows the state of. */
export const nodesOn = (page: MetricsPage): number | null => page.sum("proxynet_nodes");

/** What was counted against a collector, for a reason. */
export const failures = (page: MetricsPage, collector: string, reason: string): number =>
  page.sum("proxywarden_collect_failures_total", { collector, reason }) ?? 0;
