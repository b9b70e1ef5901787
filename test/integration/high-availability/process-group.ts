import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DAY_MS, type DurationMs, formatDuration, SECOND_MS } from "../../../src/base/duration.ts";
import type { Clock } from "../../../src/model/ports.ts";
import type { EpochMs } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { type SimulatorServer, startServer } from "../../../src/simulator/http/server.ts";
import { createService, rateLimitedCount, type SimulatedService } from "../../../src/simulator/http/service.ts";
import type { PostgresCluster } from "../../harness/servers/postgres-cluster.ts";
import { startTcpProxy } from "../../harness/servers/tcp-proxy.ts";
import { actualNode, actualNodes } from "../../harness/simulator/actual-state.ts";
import { createInterventions, type Interventions } from "../../harness/simulator/interventions.ts";
import { COMPILE_CACHE, spawnProcess } from "../process.ts";
import type { CrashPoint } from "../remediation/crash-point.ts";
import { ADMIN_TOKEN, rebootOffline } from "../remediation/healing-daemon.ts";
import {
  type PostHooks,
  type PostRequest,
  type ServiceProxy,
  startServiceProxy,
} from "../remediation/recording-proxy.ts";
import { configText } from "../simulated-network.ts";
import { type Member, startMember, until } from "./member.ts";

/** Options of a process of a group. */
export interface SharedDaemonOptions {
  readonly config: string;
  /** Its name in the lease and in its requests. */
  readonly name: string;
  /** Time of the service and of the daemons runs this many times as fast as real time. */
  readonly speed: number;
  /** When the wall clock of the group showed the real time. */
  readonly startedAt: EpochMs;
  /** Offset of its wall clock. */
  readonly clockSkewMs: DurationMs;
  /** The lease as the database measures it, in real time. */
  readonly leaseMs: DurationMs;
  /** Point at which it kills itself, or null for never. */
  readonly crash: CrashPoint | null;
}

/** Options of {@link startProcessGroup}. */
export interface ProcessGroupOptions {
  readonly speed?: number;
  /** In real time. Processes on a busy machine may stand still for seconds. */
  readonly leaseMs?: DurationMs;
  /** Time between two walks, as the daemons measure it. */
  readonly walkEveryMs?: DurationMs;
}

/** How a daemon differs from the others. */
interface MemberOptions extends Partial<Pick<SharedDaemonOptions, "clockSkewMs" | "crash">> {
  readonly script?: string;
}

/** A POST that reached the service. */
export interface ReceivedPost extends PostRequest {
  /** Last holder of the lease at its arrival according to the database, or null if the database was down. */
  readonly leader: string | null;
}

const NEVER_MS: DurationMs = 1_000_000 * DAY_MS;
const NODES = 60;
const SCRIPT = fileURLToPath(new URL("shared-daemon.ts", import.meta.url));

let groups = 0;

/** Starts the service, on a new schema of the cluster, without a daemon. The caller stops the group. */
export async function startProcessGroup(
  cluster: PostgresCluster,
  options: ProcessGroupOptions = {},
): Promise<ProcessGroup> {
  const { speed = 20, leaseMs = 4 * SECOND_MS, walkEveryMs = 6 * SECOND_MS } = options;
  groups++;
  const clock = createScaledClock(systemClock, speed);
  const startedAt = clock.now();
  const rates = { ...defaultScenario.rates, faultEveryMs: NEVER_MS, maintenanceEveryMs: NEVER_MS };
  const service = createService(
    {
      ...defaultScenario,
      nodes: NODES,
      sessions: 12,
      rates: { ...rates, rebootMs: 2 * SECOND_MS },
      service: { ...defaultScenario.service, plan: "enterprise" },
    },
    startedAt,
  );
  const server = await startServer(service, clock, { port: 0 });
  const serviceProxy = await startServiceProxy(server.url);
  return new ProcessGroup({
    cluster,
    schema: `group_${groups}`,
    clock,
    startedAt,
    service,
    server,
    serviceProxy,
    speed,
    leaseMs,
    walkEveryMs,
  });
}

/** Parts of a group. */
interface GroupParts extends Required<ProcessGroupOptions> {
  readonly cluster: PostgresCluster;
  readonly schema: string;
  readonly clock: Clock;
  readonly startedAt: EpochMs;
  readonly service: SimulatedService;
  readonly server: SimulatorServer;
  readonly serviceProxy: ServiceProxy;
}

/** Daemons as processes on one real database, against one simulated service over HTTP. */
export class ProcessGroup {
  readonly schema: string;
  readonly service: SimulatedService;
  /** All POSTs, in order. */
  readonly posts: ReceivedPost[] = [];
  readonly #parts: GroupParts;
  readonly #folder = mkdtempSync(join(tmpdir(), "group-"));
  readonly #interventions: Interventions;
  readonly #started: Member[] = [];
  readonly #ended = new Set<string>();
  readonly #picked = new Set<string>();

  constructor(parts: GroupParts) {
    this.#parts = parts;
    this.schema = parts.schema;
    this.service = parts.service;
    this.#interventions = createInterventions(parts.service, parts.clock.now);
    this.setHooks({});
  }

  /** Returns the daemons that run. */
  members(): readonly Member[] {
    return this.#started.filter(({ name }) => !this.#ended.has(name));
  }

  /** Starts a daemon. `script`: another version of `shared-daemon.ts`. Rejects if it ends instead. */
  async start(name: string, options: MemberOptions = {}): Promise<Member> {
    const { clockSkewMs = 0, crash = null, script = SCRIPT } = options;
    const { cluster, speed, startedAt, leaseMs } = this.#parts;
    const database = await startTcpProxy(cluster.port);
    const config = this.#writeConfig(name, cluster.url({ port: database.port }));
    const all: SharedDaemonOptions = { config, name, speed, startedAt, clockSkewMs, leaseMs, crash };
    const child = spawnProcess(process.execPath, [script, JSON.stringify(all)], "", COMPILE_CACHE);
    const member = await startMember(name, child, database).catch(async (error) => {
      await database.close();
      throw error;
    });
    this.#started.push(member);
    void member.ended.then(() => this.#ended.add(name));
    return member;
  }

  setHooks({ arrived, answered }: PostHooks): void {
    const { cluster, serviceProxy } = this.#parts;
    serviceProxy.setHooks({
      arrived: async (post) => {
        const rows = await cluster.query(`SELECT holder FROM ${this.schema}.leases`).catch(() => []);
        this.posts.push({ ...post, leader: rows.length === 0 ? null : String(rows[0]!.holder) });
        return (await arrived?.(post)) ?? true;
      },
      ...(answered === undefined ? {} : { answered }),
    });
  }

  /** Returns the id of a node that was not returned before. */
  pickNode(): string {
    const nodes = [...actualNodes(this.service)];
    const node = nodes.find(({ id, status }) => status === "online" && !this.#picked.has(id))!.id;
    this.#picked.add(node);
    return node;
  }

  /** Makes a node fail until it is rebooted; absent: any that did not fail before. Returns its id. */
  failNode(node = this.pickNode()): string {
    this.#interventions.startFailure(node, { failureMode: "outage", remedy: "reboot" });
    return node;
  }

  status(node: string): string {
    return actualNode(this.service, node)!.status;
  }

  /** Waits until a daemon would act, and returns it. */
  untilHealing(): Promise<Member> {
    return until(
      () => `a daemon would act:\n${this.logs()}`,
      () => this.#find((member) => member.isHealing()),
    );
  }

  /** Waits until the node was healed by an action. */
  async untilHealed(node: string): Promise<void> {
    const isVerified = async (member: Member) =>
      (await member.actionsOf(node)).some(({ outcome }) => outcome === "verified");
    await until(
      () => `${node} is healed:\n${this.logs()}`,
      () => this.#find(async (member) => (await member.isLeading()) && isVerified(member)),
    );
  }

  /** Returns how the laws of several daemons were violated, from the service's side. */
  async violations(): Promise<readonly string[]> {
    const { posts, service } = this;
    const sent = posts.map(({ path, body }) => `${path} ${body}`);
    const sql = `SELECT COALESCE(sum(used), 0)::int AS used FROM ${this.schema}.calls`;
    const used = Number((await this.#parts.cluster.query(sql))[0]!.used);
    const rejected = rateLimitedCount(service);
    return [
      ...sent.filter((step, index) => sent.indexOf(step) < index).map((step) => `sent twice: ${step}`),
      ...posts
        .filter(({ leader, userAgent }) => leader !== null && !userAgent.endsWith(`/${leader}`))
        .map(({ path, userAgent, leader }) => `sent by ${userAgent} while ${leader} led: ${path}`),
      ...(rejected > 0 ? [`${rejected} calls were answered with 429`] : []),
      ...(service.serial > used ? [`of ${service.serial} calls, ${used} are counted in the month`] : []),
    ];
  }

  /** Returns the logs of all daemons. */
  logs(): string {
    return this.#started.map(({ name, err }) => `${name}:\n${err()}`).join("\n");
  }

  /** Kills the daemons, and stops the service. */
  async stop(): Promise<void> {
    for (const { kill } of this.#started) kill("SIGKILL");
    await Promise.all(this.#started.map(({ ended, database }) => Promise.all([ended, database.close()])));
    this.#parts.serviceProxy.close();
    await this.#parts.server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #find(test: (member: Member) => Promise<boolean>): Promise<Member | null> {
    const members = this.members();
    const results = await Promise.all(members.map(test));
    return members.find((_, index) => results[index]) ?? null;
  }

  #writeConfig(name: string, databaseUrl: string): string {
    const { serviceProxy, speed, leaseMs, walkEveryMs } = this.#parts;
    const url_file = this.#write(`${name}.url`, databaseUrl);
    // The lease is renewed on the daemon's clock.
    const postgres = { url_file, schema: this.schema, lease: formatDuration(leaseMs * speed) };
    const text = configText(serviceProxy.url, {
      service: { timeout: "1m" },
      collect: {
        nodes: { every: formatDuration(walkEveryMs) },
        details: { max_age: "1d" },
        sessions: { every: "1h" },
        stats: { every: "1h" },
      },
      web: { admin_token_file: this.#write("admin", ADMIN_TOKEN) },
      state: { postgres },
      policies: [this.#write("policies.yaml", JSON.stringify({ policies: [policyFor(walkEveryMs)] }))],
      safety: SAFETY,
    });
    return this.#write(`${name}.yaml`, text);
  }

  #write(name: string, text: string): string {
    writeFileSync(join(this.#folder, name), text);
    return join(this.#folder, name);
  }
}

/** Limits that hold nothing. */
const SAFETY = {
  mode: "enforce",
  storm_cooldown: "0s",
  canary: false,
  cooldown: "0s",
  breaker: { amount: 1_000 },
  max_actions: { amount: 600, per: "10m" },
  max_unhealthy: { percent: "100%" },
  max_in_flight: 10,
  max_disrupted: { amount: 10, percent: "100%" },
  max_disrupted_per: { region: 10 },
  correlated: { nodes: 50, percent: "100%" },
};

/** Every node is acted on in one episode, so that no step is sent twice by right. */
const policyFor = (walkEveryMs: DurationMs) =>
  rebootOffline({
    within: formatDuration(20 * walkEveryMs),
    retry: { episodes: 1, every: "10h", forget_after: "1d" },
  });
