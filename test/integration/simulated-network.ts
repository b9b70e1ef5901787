import { onTestFinished } from "vitest";
import { fail, ok } from "../../src/base/result.ts";
import { parseConfig } from "../../src/cli/config/config-loading.ts";
import { formatProblem } from "../../src/config/diagnostics/problem.ts";
import type { FaultKind, Scenario } from "../../src/config/schema/scenario.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import type { DaemonDeps } from "../../src/daemon/runtime.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { Clock } from "../../src/model/ports.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createScaledClock } from "../../src/simulator/clock.ts";
import { defaultScenario, SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { startServer } from "../../src/simulator/http/server.ts";
import { createService, type SimulatedService } from "../../src/simulator/http/service.ts";
import { createRecordingLog } from "../harness/daemon/virtual-daemon.ts";
import { orThrow } from "../harness/or-throw.ts";
import { type MetricsPage, parseMetricsPage } from "./metrics-page.ts";

/** Sections of a configuration file. */
export type ConfigSections = Readonly<Record<string, Readonly<Record<string, unknown>> | readonly unknown[]>>;

/** Returns the text of a configuration in which every collector runs every few seconds, so that tests are short. */
export function configText(serviceUrl: string, sections: ConfigSections = {}): string {
  const defaults: ConfigSections = {
    // At SPEED times real time, this is 5 s: a busy machine needs longer than usual for a response.
    service: { base_url: serviceUrl, usage_scale: "ratio", timeout: "5m" },
    limits: { plan: "enterprise" },
    collect: {
      nodes: { every: "5s" },
      details: { max_age: "1m" },
      sessions: { every: "5s" },
      stats: { every: "5s" },
    },
    web: { listen: "127.0.0.1:0" },
    // A new journal allows the first action after `per` / `amount`: here a second.
    safety: { max_actions: { amount: 600, per: "10m" } },
  };
  const names = new Set([...Object.keys(defaults), ...Object.keys(sections)]);
  const merged = Object.fromEntries(
    [...names].map((name) => {
      const section = sections[name];
      return [name, Array.isArray(section) ? section : { ...defaults[name], ...section }] as const;
    }),
  );
  if (!("api_key_file" in merged.service!)) merged.service = { api_key: SIMULATION_KEY, ...merged.service };
  // JSON is valid YAML.
  return JSON.stringify(merged, null, 2);
}

/** A simulated service over HTTP. */
export interface TestNetwork {
  readonly clock: Clock;
  readonly service: SimulatedService;
  readonly url: string;
  /** Applies a fault to all requests, or to those whose path matches; null: ends it. */
  setFault(fault: FaultKind | null, match?: string): void;
}

interface TestNetworkOptions {
  readonly scenario?: Partial<Scenario>;
  /** Speed as a multiple of real time; default: 60. */
  readonly speed?: number;
  /** Default: any free port. */
  readonly port?: number;
}

const SPEED = 60;
/** The list fits on one page, and the details are read within a minute. */
export const NODES = 40;
const SESSIONS = 200;

/** Starts a simulated service, which stops after the test. */
export async function startNetwork({
  scenario = {},
  speed = SPEED,
  port = 0,
}: TestNetworkOptions = {}): Promise<TestNetwork> {
  const clock = createScaledClock(systemClock, speed);
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

/** A daemon in the process of the test. */
export interface TestDaemon {
  readonly app: Daemon;
  readonly log: ReturnType<typeof createRecordingLog>;
  /** Replaces the text of the configuration file, which a reload reads. */
  configure(text: string): void;
  /** Sends a request to the daemon. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Scrapes the daemon and checks its health. Throws if either fails. */
  scrape(): Promise<MetricsPage>;
}

/** Starts a daemon, which stops after the test. `openStore`: by default the state is in memory. */
export async function startTestDaemon(
  clock: Clock,
  firstConfig: string,
  openStore: DaemonDeps["openStore"] = () => ok(createMemoryStateStore()),
): Promise<TestDaemon> {
  const log = createRecordingLog();
  let text = firstConfig;
  const readConfig = () => {
    const parsed = parseConfig("proxywarden.yaml", text, {});
    return parsed.ok ? parsed : fail(parsed.error.map(formatProblem));
  };
  const started = await startDaemon(orThrow(readConfig()), {
    clock,
    random: Math.random,
    log: { ...log, setLevel() {} },
    version: "0.0.0-test",
    readConfig,
    openStore,
  });
  const app = orThrow(started);
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

/** Starts a simulated service and a daemon that monitors it. */
export async function startDaemonOnNetwork(options: TestNetworkOptions & { readonly config?: ConfigSections } = {}) {
  const network = await startNetwork(options);
  const daemon = await startTestDaemon(network.clock, configText(network.url, options.config));
  return { network, daemon };
}

/** Returns the number of nodes on a page; null: unknown. */
export const nodesOn = (page: MetricsPage): number | null => page.sum("proxynet_nodes");

/** Returns the failures of a collector, by reason. */
export const failures = (page: MetricsPage, collector: string, reason: string): number =>
  page.sum("proxywarden_collect_failures_total", { collector, reason }) ?? 0;
