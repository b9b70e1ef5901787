import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { parseConfig } from "../../../src/cli/config/config-loading.ts";
import type { CollectionSettings } from "../../../src/collectors/collector-manager.ts";
import type { Scenario } from "../../../src/config/schema/scenario.ts";
import { type ConfigResources, openConfigResources } from "../../../src/daemon/config-resources.ts";
import { RoleSwitch } from "../../../src/daemon/role-switch.ts";
import { type DaemonDeps, openRuntime, type Runtime } from "../../../src/daemon/runtime.ts";
import type { Clock, Transport } from "../../../src/model/ports.ts";
import type { Action } from "../../../src/model/remediation/episode.ts";
import type { Receiver } from "../../../src/model/remediation/notification.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { createVirtualClock, type VirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createService, rateLimitedCount, type SimulatedService } from "../../../src/simulator/http/service.ts";
import { orThrow } from "../or-throw.ts";
import { rebootOffline, remediationConfig, withoutRetries } from "../policies.ts";
import { bodyOf } from "../scrape-body.ts";
import { actualNodes } from "../simulator/actual-state.ts";
import { createInterventions } from "../simulator/interventions.ts";
import { createSimulatedTransport } from "../simulator/transport.ts";
import { journalRows } from "./journal-rows.ts";
import { listsOnlySettings, noFailureRates } from "./quiet-network.ts";
import { createSharedDatabase, type DatabaseConnection, type SharedDatabase } from "./shared-database.ts";
import { createRecordingLog, everyMinuteSettings, START_MS } from "./virtual-daemon.ts";

/** A POST, as the service received it. */
export interface SentPost {
  readonly daemon: string;
  readonly path: string;
  readonly body: string;
  readonly at: number;
  /** Whether the daemon held the lease by the database's clock. */
  readonly isByLeader: boolean;
}

/** One of several daemons on a shared database. It has no web server. */
export interface GroupedDaemon {
  readonly name: string;
  readonly roleSwitch: RoleSwitch;
  readonly runtime: Runtime;
  readonly database: DatabaseConnection;
  readonly log: ReturnType<typeof createRecordingLog>;
  /** Suspends the process until {@link resume}, as SIGSTOP does. */
  pause(): void;
  resume(): void;
  /** Stops it as SIGTERM does. */
  stop(): Promise<void>;
  reload(changed: Partial<DaemonSettings>): Promise<void>;
  /** Returns the page of metrics. */
  scrape(): Promise<string>;
}

/** Settings that a reload may change. */
export interface DaemonSettings {
  readonly config: RemediationConfig;
  readonly settings: Partial<CollectionSettings>;
  readonly receivers: readonly Receiver[];
  /** `service.base_url`. */
  readonly serviceUrl: string;
}

/** Daemons on virtual time over one database, against one simulated service. */
export interface DaemonGroup {
  readonly clock: VirtualClock;
  readonly service: SimulatedService;
  readonly database: SharedDatabase;
  readonly daemons: readonly GroupedDaemon[];
  readonly posts: readonly SentPost[];
  advance(ms: DurationMs): Promise<void>;
  /** Advances second by second until the condition holds, for at most an hour. */
  advanceUntil(condition: () => boolean): Promise<void>;
  leaders(): readonly string[];
  /** Makes a node that did not fail before fail until it is rebooted. Returns its id. */
  failNode(remedy?: "reboot" | "forced_reboot"): string;
  actions(): readonly Action[];
  /** Number of replies with 429. */
  rejectedCalls(): number;
}

/** Options of {@link startDaemonGroup}. */
export interface DaemonGroupOptions extends Partial<DaemonSettings> {
  readonly daemons?: number;
  readonly scenario?: Partial<Scenario>;
}

/** Reboots offline nodes after a minute. A new journal allows the first action after a minute. */
const defaultConfig = remediationConfig([rebootOffline({ forMs: MINUTE_MS, retry: withoutRetries })], {
  maxActions: { amount: 60, perMs: HOUR_MS },
});

const LATENCY_MS: DurationMs = 50;

/** Starts the daemons, which stop after the test. */
export async function startDaemonGroup(options: DaemonGroupOptions = {}): Promise<DaemonGroup> {
  const clock = createVirtualClock(START_MS);
  const scenario = { ...defaultScenario, nodes: 60, sessions: 12, rates: noFailureRates, ...options.scenario };
  const service = createService(scenario, START_MS);
  const database = createSharedDatabase(clock);
  const posts: SentPost[] = [];
  const transport = createSimulatedTransport(service, clock, { latencyMs: LATENCY_MS });
  const names = ["one", "two", "three"].slice(0, options.daemons ?? 2);
  const daemons: GroupedDaemon[] = [];
  for (const name of names) daemons.push(await startDaemon(name, { clock, transport, database, posts }, options));
  const interventions = createInterventions(service, () => START_MS + clock.monotonic());
  const failed = new Set<string>();
  return {
    clock,
    service,
    database,
    daemons,
    posts,
    advance: (ms) => clock.advance(ms),
    async advanceUntil(condition) {
      for (let second = 0; second < 3_600; second++) {
        if (condition()) return;
        await clock.advance(SECOND_MS);
      }
      throw new Error(`the condition did not hold within an hour: ${condition}`);
    },
    leaders: () => daemons.flatMap(({ name, roleSwitch }) => (roleSwitch.isLeading() ? [name] : [])),
    failNode(remedy = "reboot") {
      const node = [...actualNodes(service)].find(({ id, status }) => status === "online" && !failed.has(id))!;
      failed.add(node.id);
      interventions.startFailure(node.id, { failureMode: "outage", remedy });
      return node.id;
    },
    actions: () => journalRows(database.store, "actions"),
    rejectedCalls: () => rateLimitedCount(service),
  };
}

/** After this time the inventory of the leader is trusted. */
const WARM_UP_MS: DurationMs = 4 * MINUTE_MS;

/** Starts the daemons, and advances the clock until the inventory is trusted. */
export async function startTrustedGroup(options: DaemonGroupOptions = {}): Promise<DaemonGroup> {
  const group = await startDaemonGroup(options);
  await group.advance(WARM_UP_MS);
  return group;
}

interface Surroundings {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly database: SharedDatabase;
  readonly posts: SentPost[];
}

async function startDaemon(name: string, outside: Surroundings, options: DaemonGroupOptions): Promise<GroupedDaemon> {
  const process = createPausableProcess(outside.clock);
  const database = outside.database.connect(name, process.clock);
  const log = createRecordingLog();
  const deps: DaemonDeps = {
    clock: process.clock,
    random: seededRandom(name.length),
    log: { ...log, setLevel() {} },
    version: "0.0.0",
    readConfig: () => parsedConfig(),
    openStore: () => ({ ok: true, value: database.state }),
  };
  const transport: Transport = {
    ...outside.transport,
    async request(request, signal) {
      if (request.method === "POST" && request.mayBeSent?.() !== false) {
        const isByLeader = outside.database.holder() === name;
        outside.posts.push({
          daemon: name,
          path: request.path,
          body: request.body ?? "",
          at: outside.clock.now(),
          isByLeader,
        });
      }
      const answer = await outside.transport.request(request, signal);
      await process.running();
      return answer;
    },
  };
  const resourcesOf = ({ config, settings, receivers = [], serviceUrl }: Partial<DaemonSettings>): ConfigResources => {
    const opened = orThrow(openConfigResources(orThrow(parsedConfig()), deps));
    const { policies, safety, time_intervals } = config ?? defaultConfig;
    return {
      ...opened,
      transport,
      integrations: { ...opened.integrations, receivers },
      policies,
      config: {
        ...opened.config,
        ...(serviceUrl !== undefined && { service: { ...opened.config.service, base_url: serviceUrl } }),
        safety,
        time_intervals,
      },
      settings: { ...everyMinuteSettings, ...listsOnlySettings, ...settings },
    };
  };
  const { runtime } = orThrow(await openRuntime(deps, orThrow(parsedConfig()).config));
  const roleSwitch = new RoleSwitch(runtime);
  await roleSwitch.standBy(resourcesOf(options), database.state);
  let isStopped = false;
  async function stop(): Promise<void> {
    if (isStopped) return;
    isStopped = true;
    process.resume();
    const stopping = roleSwitch.stop(outside.clock.monotonic()).then(() => roleSwitch.handOver());
    await outside.clock.advance(20 * SECOND_MS);
    await stopping;
  }
  onTestFinished(stop);
  return {
    name,
    roleSwitch,
    runtime,
    database,
    log,
    stop,
    pause: process.pause,
    resume: process.resume,
    async reload(changed) {
      const reloading = roleSwitch.activate(resourcesOf({ ...options, ...changed }));
      await outside.clock.advance(SECOND_MS);
      await reloading;
    },
    async scrape() {
      const answer = await runtime.exposition.scrape({});
      const text = bodyOf(answer).toString();
      answer.release();
      return text;
    },
  };
}

/** The clock of a process that can be stopped: its sleepers wake only while it runs. */
function createPausableProcess(clock: Clock) {
  /** Resolves when the process resumes. Null while it runs. */
  let resumed: PromiseWithResolvers<void> | null = null;
  const running = async () => resumed?.promise;
  return {
    running,
    pause() {
      resumed ??= Promise.withResolvers<void>();
    },
    resume() {
      resumed?.resolve();
      resumed = null;
    },
    clock: {
      ...clock,
      async sleep(ms: DurationMs, signal?: AbortSignal) {
        await clock.sleep(ms, signal);
        await running();
      },
    },
  };
}

/** Parses a configuration with a shared state, to which `sections` are added. */
export function parsedConfig(sections: object = {}) {
  const text = JSON.stringify({
    service: { base_url: "https://proxy.example.net", api_key: SIMULATION_KEY, usage_scale: "ratio" },
    limits: { plan: "business" },
    // Read by nothing, but checked to exist.
    state: { postgres: { url_file: fileURLToPath(import.meta.url) } },
    ...sections,
  });
  const parsed = parseConfig("proxywarden.yaml", text, {});
  return parsed.ok ? parsed : { ok: false as const, error: parsed.error.map(({ message }) => message) };
}
