import { onTestFinished } from "vitest";
import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { CollectionSettings } from "../../../src/collectors/collector-manager.ts";
import type { ChurnRates, Fault, FaultKind, FleetRates, Scenario } from "../../../src/config/schema/scenario.ts";
import { createMemoryStateStore, type SqliteStateStore } from "../../../src/journal/sqlite/store.ts";
import type { Clock, Transport, TransportRequest } from "../../../src/model/ports.ts";
import type { Action, Decision, Episode } from "../../../src/model/remediation/episode.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import type { Notification, Receiver } from "../../../src/model/remediation/notification.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import type { RemediationController } from "../../../src/remediation/controller.ts";
import type { NodeExplanation } from "../../../src/remediation/status/views.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import {
  createService,
  type ReplyCount,
  replyCounts,
  type SimulatedService,
} from "../../../src/simulator/http/service.ts";
import { type CommandsByName, commandsOf } from "../operator-commands.ts";
import { actualNode } from "../simulator/actual-state.ts";
import { createInterventions, type Interventions } from "../simulator/interventions.ts";
import { createSimulatedTransport } from "../simulator/transport.ts";
import { createCrashableProcess, type InjectedFailures, type ProcessEvent } from "./crashable-process.ts";
import { journalRows } from "./journal-rows.ts";
import {
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
  type VirtualDaemonOptions,
} from "./virtual-daemon.ts";

/** A daemon with a remediation controller, on a simulated network in which nothing happens but what the test does. */
export interface QuietNetwork {
  daemon: VirtualDaemon;
  readonly store: SqliteStateStore;
  readonly interventions: Interventions;
  readonly notifications: readonly Notification[];
  /** Every commit that reached the disk and every request, over all restarts. */
  readonly events: readonly ProcessEvent[];
  readonly injectedFailures: InjectedFailures;
  controller(): RemediationController;
  /** Returns the commands of an operator. Absent: no operators are configured. */
  commands(operator?: string): CommandsByName;
  advance(ms: DurationMs): Promise<void>;
  /** Advances the clock second by second until the condition holds. Throws if it does not hold within three hours. */
  advanceUntil(condition: () => boolean): Promise<void>;
  /** Returns the ids of the nodes of a region, or of all nodes. */
  nodes(region?: string): readonly string[];
  status(node: string): string;
  /** Makes a node fail until the remedy; `operator`: only an operator can repair it. */
  failNode(node: string, remedy?: "reboot" | "forced_reboot" | "operator"): void;
  /** Returns the POSTs that reached the service, by reply. */
  posts(): readonly ReplyCount[];
  postCount(): number;
  actions(): readonly Action[];
  episodes(): readonly Episode[];
  decisions(): readonly Decision[];
  explain(node: string): NodeExplanation;
  /** Returns why the policy that fires holds a node now. */
  holdReasons(node: string): readonly string[];
  /** Replaces the faults of the service from now on. */
  setFault(fault: FaultKind | null, match?: string): void;
  setFaults(faults: readonly Pick<Fault, "fault" | "match" | "share">[]): void;
  /** Stops the process unless it was killed, and starts it again after `downMs` on the same store and service. */
  restart(options?: Partial<VirtualDaemonOptions> & { readonly downMs?: DurationMs }): Promise<void>;
  /** Restarts remediation with other options in the same process: state and inventory stay. */
  reload(options: Partial<VirtualDaemonOptions>): Promise<void>;
  kill(): void;
  isAlive(): boolean;
  stop(): Promise<void>;
}

export interface QuietNetworkOptions extends VirtualDaemonOptions {
  readonly config: RemediationConfig;
  readonly store?: SqliteStateStore;
  readonly warmUpMs?: DurationMs;
  /** Wraps the transport from the daemon to the service. */
  readonly wrapTransport?: (service: Transport) => Transport;
}

/** The first node of us-east. Its id is the same in every simulated fleet, so a policy of a test may match it. */
export const ONE_NODE = "node_caffe390";

/** Rates of a fleet in which nothing fails. */
export const noFailureRates: FleetRates = {
  ...defaultScenario.rates,
  faultEveryMs: 1_000_000 * DAY_MS,
  maintenanceEveryMs: 1_000_000 * DAY_MS,
  rebootMs: 2 * MINUTE_MS,
};

/** Returns how nodes come and go if only reboots make them leave, or stay down. Those that leave do not return. */
export const churnAfterReboots = (rates: Partial<ChurnRates>): ChurnRates => ({ ...defaultScenario.churn, ...rates });

const quietScenario: Partial<Scenario> = { nodes: 60, sessions: 12, rates: noFailureRates };

/** Settings that collect only the list of nodes: most policies read nothing else. */
export const listsOnlySettings: Partial<CollectionSettings> = {
  schedules: { ...everyMinuteSettings.schedules, details: null, sessions: null, stats: null, hourly: null },
};

/** Settings that also collect details, for policies that read fields of details, such as `created_at`. */
export const listsAndDetailsSettings: Partial<CollectionSettings> = {
  schedules: { ...listsOnlySettings.schedules!, details: everyMinuteSettings.schedules.details },
};

/** After this time the inventory is trusted. */
const WARM_UP_MS: DurationMs = 4 * MINUTE_MS;
const WAIT_SECONDS_MAX = 3 * 3_600;

/** Starts a daemon, and advances the clock until its inventory is trusted. It stops when the test ends. */
export async function startQuietNetwork(options: QuietNetworkOptions): Promise<QuietNetwork> {
  const clock = options.clock ?? createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, ...quietScenario, ...options.scenario }, START_MS);
  const store = options.store ?? createMemoryStateStore();
  const direct = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const transport = options.wrapTransport?.(direct) ?? direct;
  const notifications: Notification[] = [];
  const events: ProcessEvent[] = [];
  const injectedFailures: InjectedFailures = { writeError: null, crashAt: null };
  const startProcess = () => createCrashableProcess({ clock, transport, store }, injectedFailures, events);
  let process = startProcess();
  function startDaemon(changed: Partial<VirtualDaemonOptions>): Promise<VirtualDaemon> {
    const defaults = { receivers: [recordingReceiver(notifications)], settings: listsOnlySettings };
    const outside = { service, clock: process.clock, transport: process.transport, store: process.store };
    return startVirtualDaemon({ ...defaults, ...options, ...changed, ...outside });
  }
  const network: QuietNetwork = {
    daemon: await startDaemon({}),
    store,
    notifications,
    events,
    injectedFailures,
    ...createInspection(service, store),
    interventions: createInterventions(service, () => START_MS + clock.monotonic()),
    controller: () => network.daemon.controller!,
    commands: (operator) => commandsOf(network.controller().operatorCommands, operator),
    advance: (ms) => clock.advance(ms),
    async advanceUntil(condition) {
      for (let second = 0; second < WAIT_SECONDS_MAX; second++) {
        if (condition()) return;
        await clock.advance(SECOND_MS);
      }
      throw new Error(`the condition did not hold within ${WAIT_SECONDS_MAX} s: ${condition}`);
    },
    failNode: (node, remedy = "reboot") => network.interventions.startFailure(node, { failureMode: "outage", remedy }),
    explain: (node) => runAtOnce(network.controller().view.explain(node)),
    holdReasons(node) {
      const explained = network.explain(node).policies.find(({ timer }) => timer?.state === "firing");
      return explained?.blockers.map(({ reason }) => reason) ?? [];
    },
    setFault: (fault, match) =>
      network.setFaults(fault === null ? [] : [{ fault, ...(match === undefined ? {} : { match }) }]),
    setFaults(faults) {
      const forMs = Number.POSITIVE_INFINITY;
      service.setFaults(faults.map((fault) => ({ afterMs: clock.monotonic(), forMs, ...fault })));
    },
    async restart({ downMs = MINUTE_MS, ...changed } = {}) {
      await network.stop();
      await clock.advance(downMs);
      process = startProcess();
      network.daemon = await startDaemon(changed);
    },
    async reload(changed) {
      const { remediationState, collected, serviceClock, notifier } = network.daemon;
      await network.stop();
      const activeNotifications = notifier.activeNotifications();
      network.daemon = await startDaemon({
        remediationState,
        collected,
        serviceClock,
        activeNotifications,
        ...changed,
      });
    },
    kill: () => process.kill(),
    isAlive: () => process.isAlive(),
    async stop() {
      const defect = network.daemon.log.lines.find(({ message }) => message.startsWith("remediation round failed"));
      // The clock and the disk of a killed process fail its rounds, which is no defect.
      if (defect !== undefined && process.isAlive()) throw defect.fields.err;
      if (process.isAlive()) await stopVirtualDaemon(network.daemon);
    },
  };
  onTestFinished(network.stop);
  await clock.advance(options.warmUpMs ?? WARM_UP_MS);
  return network;
}

/** Starts a network whose first node in us-east fails until the remedy, by default a reboot. */
export async function startWithFailedNode({
  remedy,
  ...options
}: QuietNetworkOptions & { readonly remedy?: Parameters<QuietNetwork["failNode"]>[1] }) {
  const network = await startQuietNetwork(options);
  const [node] = network.nodes("us-east") as [string];
  network.failNode(node, remedy);
  return { network, node };
}

const recordingReceiver = (notifications: Notification[]): Receiver => ({
  name: "oncall",
  send(sent) {
    notifications.push(...sent);
    return Promise.resolve({ ok: true });
  },
});

/** Creates the functions with which a test reads the state of the service and of the journal. */
function createInspection(service: SimulatedService, store: SqliteStateStore) {
  const posts = () => replyCounts(service).filter(({ endpoint }) => endpoint.startsWith("POST"));
  return {
    nodes: (region?: string) =>
      service.network.fleet.nodes.filter((node) => region === undefined || node.region === region).map(({ id }) => id),
    status: (id: string) => actualNode(service, id)!.status,
    posts,
    postCount: () => posts().reduce((sum, { count }) => sum + count, 0),
    actions: () => journalRows(store, "actions"),
    episodes: () => journalRows(store, "episodes"),
    decisions: () => journalRows(store, "decisions"),
  };
}

/** Returns the first node of each of `count` regions. */
export function onePerRegion(network: Pick<QuietNetwork, "nodes" | "daemon">, count: number): readonly string[] {
  const { fleet } = network.daemon.snapshots.last!;
  const regions = new Map<string, string>();
  for (const node of network.nodes()) {
    const { region } = fleet.locations[fleet.locationIndex[fleet.ids.indexOf(node)]!]!;
    if (!regions.has(region)) regions.set(region, node);
  }
  return [...regions.values()].slice(0, count);
}

/** Suspends the machine: the monotonic clock stands still while the wall clock and the service's clock advance. */
export function suspend(network: Pick<QuietNetwork, "daemon" | "setFault">, ms: DurationMs): void {
  network.daemon.clock.stepWallClock(ms);
  network.setFault({ kind: "clock_skew", skewMs: ms });
}

/** Wraps the transport of a network so that `onAnswer` is called after the response to each request that `matches`. */
export const withAnswers =
  (matches: (request: TransportRequest) => boolean, onAnswer: () => void) =>
  (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (matches(request)) onAnswer();
      return answer;
    },
  });

/** Creates a state in memory whose journal takes `delayOf` the changes of a commit to write them. */
export function createSlowStore(
  clock: Clock,
  delayOf: (changes: readonly JournalChange[]) => DurationMs,
): SqliteStateStore {
  const store = createMemoryStateStore();
  const journal: typeof store.journal = {
    ...store.journal,
    async commit(changes) {
      const delayMs = delayOf(changes);
      if (delayMs > 0) await clock.sleep(delayMs);
      await store.journal.commit(changes);
    },
  };
  return { ...store, journal };
}
