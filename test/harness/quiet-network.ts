import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { CollectionSettings } from "../../src/collectors/collector-manager.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite.ts";
import type { StateStore, Transport } from "../../src/model/ports.ts";
import type { Decision } from "../../src/model/remediation/decision.ts";
import type { Action, Episode } from "../../src/model/remediation/episode.ts";
import type { Notification, Receiver } from "../../src/model/remediation/notification.ts";
import type { Fault, FaultKind, FleetRates, Scenario } from "../../src/model/scenario.ts";
import type { RemediationRules } from "../../src/remediation/context.ts";
import type { RemediationController } from "../../src/remediation/controller.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { createSimulatedTransport } from "../../src/simulator/http/transport.ts";
import { actualNodes, type ReplyCount, replyCounts } from "../../src/simulator/inspection.ts";
import { createInterventions, type Interventions } from "../../src/simulator/intervention.ts";
import { createCrashableProcess, type InjectedFailures, type ProcessEvent } from "./crashable-process.ts";
import {
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
  type VirtualDaemonOptions,
} from "./virtual-daemon.ts";

/** A daemon with a warden over a network in which nothing happens but what a test does. */
export interface QuietNetwork {
  daemon: VirtualDaemon;
  readonly store: StateStore;
  readonly interventions: Interventions;
  readonly notices: readonly Notification[];
  /** Every commit that reached the disk and every request, from the start on and over all restarts. */
  readonly events: readonly ProcessEvent[];
  readonly injectedFailures: InjectedFailures;
  controller(): RemediationController;
  advance(ms: DurationMs): Promise<void>;
  /** Lets time pass until something is so, to a second; throws if it is not so within three hours. */
  advanceUntil(isSo: () => boolean): Promise<void>;
  /** Ids of the nodes of a region, or all. */
  nodes(region?: string): readonly string[];
  status(node: string): string;
  /** A node falls ill, and stays so until the cure. */
  failedNodes(node: string, cure?: "reboot" | "forced_reboot" | "person"): void;
  /** POSTs that the service answered or saw. */
  posts(): readonly ReplyCount[];
  postCount(): number;
  actions(): readonly Action[];
  episodes(): readonly Episode[];
  decisions(): readonly Decision[];
  /** Reasons for which a node is held now, by the policy that fires. */
  holdReasons(node: string): readonly string[];
  /** Faults in force from now on, in place of those before. */
  setFault(fault: FaultKind | null, match?: string): void;
  setFaults(faults: readonly Pick<Fault, "fault" | "match" | "share">[]): void;
  /** Ends the process, in order or where it was killed, and starts it anew after a while on the same store and service. */
  restart(options?: Partial<VirtualDaemonOptions> & { readonly downMs?: DurationMs }): Promise<void>;
  /** Another configuration in the same process: what was seen and remembered stays. */
  reload(options: Partial<VirtualDaemonOptions>): Promise<void>;
  kill(): void;
  isAlive(): boolean;
  stop(): Promise<void>;
}

export interface QuietNetworkOptions extends VirtualDaemonOptions {
  readonly rules: RemediationRules;
  readonly warmUpMs?: DurationMs;
  /** Stands between the daemon and the service. */
  readonly between?: (service: Transport) => Transport;
}

/** Nothing happens by itself. */
export const noFailureRates: FleetRates = {
  ...defaultScenario.rates,
  faultEveryMs: 1_000_000 * DAY_MS,
  maintenanceEveryMs: 1_000_000 * DAY_MS,
  rebootMs: 2 * MINUTE_MS,
};

/** A network with all of its nodes well. */
const quietScenario: Partial<Scenario> = { nodes: 60, sessions: 12, rates: noFailureRates };

/** The list of nodes alone is collected: most policies read no more. */
export const listsOnlySettings: Partial<CollectionSettings> = {
  schedules: { ...everyMinuteSettings.schedules, details: null, sessions: null, stats: null, hourly: null },
};

/** Walks until it is trusted: a few minutes. */
const WARM_UP_MS: DurationMs = 4 * MINUTE_MS;
const ROWS = 1_000;
const WAIT_SECONDS_MAX = 3 * 3_600;

/** Starts a ward and lets it see enough to be trusted. */
export async function startQuietNetwork(options: QuietNetworkOptions): Promise<QuietNetwork> {
  const clock = options.clock ?? createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, ...quietScenario, ...options.scenario }, START_MS);
  const store = options.store ?? createMemoryStateStore();
  const network = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const transport = options.between?.(network) ?? network;
  const notifications: Notification[] = [];
  const oncall: Receiver = {
    name: "oncall",
    send(sent) {
      notifications.push(...sent);
      return Promise.resolve({ ok: true });
    },
  };
  const happenings: ProcessEvent[] = [];
  const mishaps: InjectedFailures = { writeError: null, crashAt: null };
  let process = createCrashableProcess({ clock, transport, store }, mishaps, happenings);
  function begin(changed: Partial<VirtualDaemonOptions>): VirtualDaemon {
    const { clock: own, transport: way, store: disk } = process;
    const usual = { receivers: [oncall], settings: listsOnlySettings, ...options, ...changed };
    return startVirtualDaemon({ ...usual, service, clock: own, transport: way, store: disk });
  }
  const journal = store.journal;
  const run: QuietNetwork = {
    daemon: begin({}),
    ...{ store, notices: notifications, events: happenings, injectedFailures: mishaps },
    interventions: createInterventions(service, () => START_MS + clock.monotonic()),
    controller: () => run.daemon.controller!,
    advance: (ms) => clock.advance(ms),
    async advanceUntil(isSo) {
      for (let second = 0; second < WAIT_SECONDS_MAX; second++) {
        if (isSo()) return;
        await clock.advance(SECOND_MS);
      }
      throw new Error("what was waited for did not come");
    },
    nodes: (region) =>
      [...actualNodes(service)].filter((node) => region === undefined || node.region === region).map(({ id }) => id),
    status: (id) => [...actualNodes(service)].find((node) => node.id === id)!.status,
    failedNodes: (node, cure = "reboot") =>
      run.interventions.startFailure(node, { failureMode: "outage", remedy: cure }),
    posts: () => replyCounts(service).filter(({ endpoint }) => endpoint.startsWith("POST")),
    postCount: () => run.posts().reduce((sum, { count }) => sum + count, 0),
    actions: () => journal.actions({ limit: ROWS }).toReversed(),
    episodes: () => journal.episodes({ limit: ROWS }).toReversed(),
    decisions: () => journal.decisions({ limit: ROWS }).toReversed(),
    holdReasons(node) {
      const explained = run
        .controller()
        .view.explain(node)
        .policies.find(({ timer }) => timer?.state === "firing");
      return explained?.blockers.map(({ reason }) => reason) ?? [];
    },
    setFault: (fault, match) =>
      run.setFaults(fault === null ? [] : [{ fault, ...(match === undefined ? {} : { match }) }]),
    setFaults(faults) {
      const forMs = Number.POSITIVE_INFINITY;
      service.setFaults(faults.map((fault) => ({ afterMs: clock.monotonic(), forMs, ...fault })));
    },
    async restart({ downMs = MINUTE_MS, ...changed } = {}) {
      await run.stop();
      await clock.advance(downMs);
      process = createCrashableProcess({ clock, transport, store }, mishaps, happenings);
      run.daemon = begin(changed);
    },
    async reload(changed) {
      const { remediationState, collected, serviceClock } = run.daemon;
      await run.stop();
      run.daemon = begin({ remediationState, collected, serviceClock, ...changed });
    },
    kill: () => process.kill(),
    isAlive: () => process.isAlive(),
    async stop() {
      const defect = run.daemon.log.lines.find(({ message }) => message.startsWith("remediation round failed"));
      // A dead one is told many things that are not so.
      if (defect !== undefined && process.isAlive()) throw defect.fields.err;
      if (process.isAlive()) await stopVirtualDaemon(run.daemon);
    },
  };
  await clock.advance(options.warmUpMs ?? WARM_UP_MS);
  return run;
}

/** The first node of each region: no two of them are of one place. */
export function onePerRegion(context: Pick<QuietNetwork, "nodes" | "daemon">, count: number): readonly string[] {
  const { fleet } = context.daemon.snapshots.last!;
  const regions = new Map<string, string>();
  for (const node of context.nodes()) {
    const { region } = fleet.locations[fleet.locationIndex[fleet.ids.indexOf(node)]!]!;
    if (!regions.has(region)) regions.set(region, node);
  }
  return [...regions.values()].slice(0, count);
}
