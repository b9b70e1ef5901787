import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Rules } from "../../src/remediation/context.ts";
import type { Warden } from "../../src/remediation/controller.ts";
import type { WatchSettings } from "../../src/collectors/collector-manager.ts";
import type { Decision } from "../../src/model/remediation/decision.ts";
import type { Action, Episode } from "../../src/model/remediation/episode.ts";
import type { Notice, Receiver } from "../../src/model/remediation/notification.ts";
import type { Store, Transport } from "../../src/model/ports.ts";
import type { Fault, FaultKind, FleetRates, Scenario } from "../../src/model/scenario.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { nodesOf, type ReplyCount, replyCounts } from "../../src/simulator/inspection.ts";
import { createInterventions, type Interventions } from "../../src/simulator/intervention.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { createSimulatedTransport } from "../../src/simulator/http/transport.ts";
import { createMemoryStore } from "../../src/journal/sqlite.ts";
import { type Daemon, type DaemonOptions, minuteSettings, START_MS, startDaemon, stopDaemon } from "./virtual-daemon.ts";
import { createProcess, type Happening, type Mishaps } from "./crashable-process.ts";

/** A daemon with a warden over a network in which nothing happens but what a test does. */
export interface WardRun {
  daemon: Daemon;
  readonly store: Store;
  readonly people: Interventions;
  readonly notices: readonly Notice[];
  /** Every commit that reached the disk and every request, from the start on and over all restarts. */
  readonly happenings: readonly Happening[];
  readonly mishaps: Mishaps;
  warden(): Warden;
  pass(ms: DurationMs): Promise<void>;
  /** Lets time pass until something is so, to a second; throws if it is not so within three hours. */
  passUntil(isSo: () => boolean): Promise<void>;
  /** Ids of the nodes of a region, or all. */
  nodes(region?: string): readonly string[];
  status(node: string): string;
  /** A node falls ill, and stays so until the cure. */
  fell(node: string, cure?: "reboot" | "forced_reboot" | "person"): void;
  /** POSTs that the service answered or saw. */
  posts(): readonly ReplyCount[];
  postCount(): number;
  actions(): readonly Action[];
  episodes(): readonly Episode[];
  decisions(): readonly Decision[];
  /** Reasons for which a node is held now, by the policy that fires. */
  reasons(node: string): readonly string[];
  /** Faults in force from now on, in place of those before. */
  strike(fault: FaultKind | null, match?: string): void;
  strikeAll(faults: readonly Pick<Fault, "fault" | "match" | "share">[]): void;
  /** Ends the process, in order or where it was killed, and starts it anew after a while on the same store and service. */
  restart(options?: Partial<DaemonOptions> & { readonly downMs?: DurationMs }): Promise<void>;
  /** Another configuration in the same process: what was seen and remembered stays. */
  reload(options: Partial<DaemonOptions>): Promise<void>;
  kill(): void;
  isAlive(): boolean;
  stop(): Promise<void>;
}

export interface WardOptions extends DaemonOptions {
  readonly rules: Rules;
  readonly settleMs?: DurationMs;
  /** Stands between the daemon and the service. */
  readonly between?: (service: Transport) => Transport;
}

/** Nothing happens by itself. */
export const quietRates: FleetRates = {
  ...defaultScenario.rates,
  faultEveryMs: 1_000_000 * DAY_MS,
  maintenanceEveryMs: 1_000_000 * DAY_MS,
  rebootMs: 2 * MINUTE_MS,
};

/** A network with all of its nodes well. */
const quiet: Partial<Scenario> = { nodes: 60, sessions: 12, rates: quietRates };

/** The list of nodes alone is collected: most policies read no more. */
export const listsOnly: Partial<WatchSettings> = {
  cadences: { ...minuteSettings.cadences, details: null, sessions: null, stats: null, hourly: null },
};

/** Walks until it is trusted: a few minutes. */
const SETTLE_MS: DurationMs = 4 * MINUTE_MS;
const ROWS = 1_000;
const PATIENCE_SECONDS = 3 * 3_600;

/** Starts a ward and lets it see enough to be trusted. */
export async function startWard(options: WardOptions): Promise<WardRun> {
  const clock = options.clock ?? createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, ...quiet, ...options.scenario }, START_MS);
  const store = options.store ?? createMemoryStore();
  const network = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const transport = options.between?.(network) ?? network;
  const notices: Notice[] = [];
  const oncall: Receiver = {
    name: "oncall",
    send(sent) {
      notices.push(...sent);
      return Promise.resolve({ ok: true });
    },
  };
  const happenings: Happening[] = [];
  const mishaps: Mishaps = { refusal: null, deathAt: null };
  let process = createProcess({ clock, transport, store }, mishaps, happenings);
  function begin(changed: Partial<DaemonOptions>): Daemon {
    const { clock: own, transport: way, store: disk } = process;
    const usual = { receivers: [oncall], settings: listsOnly, ...options, ...changed };
    return startDaemon({ ...usual, service, clock: own, transport: way, store: disk });
  }
  const journal = store.journal;
  const run: WardRun = {
    daemon: begin({}),
    ...{ store, notices, happenings, mishaps },
    people: createInterventions(service, () => START_MS + clock.monotonic()),
    warden: () => run.daemon.warden!,
    pass: (ms) => clock.advance(ms),
    async passUntil(isSo) {
      for (let second = 0; second < PATIENCE_SECONDS; second++) {
        if (isSo()) return;
        await clock.advance(SECOND_MS);
      }
      throw new Error("what was waited for did not come");
    },
    nodes: (region) =>
      [...nodesOf(service)].filter((node) => region === undefined || node.region === region).map(({ id }) => id),
    status: (id) => [...nodesOf(service)].find((node) => node.id === id)!.status,
    fell: (node, cure = "reboot") => run.people.fallIll(node, { ailment: "outage", cure }),
    posts: () => replyCounts(service).filter(({ endpoint }) => endpoint.startsWith("POST")),
    postCount: () => run.posts().reduce((sum, { count }) => sum + count, 0),
    actions: () => journal.actions({ limit: ROWS }).toReversed(),
    episodes: () => journal.episodes({ limit: ROWS }).toReversed(),
    decisions: () => journal.decisions({ limit: ROWS }).toReversed(),
    reasons(node) {
      const explained = run
        .warden()
        .view.explain(node)
        .policies.find(({ timer }) => timer?.state === "firing");
      return explained?.blockers.map(({ reason }) => reason) ?? [];
    },
    strike: (fault, match) =>
      run.strikeAll(fault === null ? [] : [{ fault, ...(match === undefined ? {} : { match }) }]),
    strikeAll(faults) {
      const forMs = Number.POSITIVE_INFINITY;
      service.setFaults(faults.map((fault) => ({ afterMs: clock.monotonic(), forMs, ...fault })));
    },
    async restart({ downMs = MINUTE_MS, ...changed } = {}) {
      await run.stop();
      await clock.advance(downMs);
      process = createProcess({ clock, transport, store }, mishaps, happenings);
      run.daemon = begin(changed);
    },
    async reload(changed) {
      const { books, sight, serviceClock } = run.daemon;
      await run.stop();
      run.daemon = begin({ books, sight, serviceClock, ...changed });
    },
    kill: () => process.kill(),
    isAlive: () => process.isAlive(),
    async stop() {
      const defect = run.daemon.log.lines.find(({ message }) => message.startsWith("a round of the warden broke"));
      // A dead one is told many things that are not so.
      if (defect !== undefined && process.isAlive()) throw defect.fields.err;
      if (process.isAlive()) await stopDaemon(run.daemon);
    },
  };
  await clock.advance(options.settleMs ?? SETTLE_MS);
  return run;
}

/** The first node of each region: no two of them are of one place. */
export function oneOfEach(ward: Pick<WardRun, "nodes" | "daemon">, count: number): readonly string[] {
  const { fleet } = ward.daemon.snapshots.last!;
  const regions = new Map<string, string>();
  for (const node of ward.nodes()) {
    const { region } = fleet.places[fleet.place[fleet.ids.indexOf(node)]!]!;
    if (!regions.has(region)) regions.set(region, node);
  }
  return [...regions.values()].slice(0, count);
}
