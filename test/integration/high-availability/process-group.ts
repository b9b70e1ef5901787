import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DAY_MS, type DurationMs, formatDuration, SECOND_MS } from "../../../src/base/duration.ts";
import type { EpochMs } from "../../../src/model/time.ts";
import { createSystemClock } from "../../../src/platform/clock.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { startServer } from "../../../src/simulator/http/server.ts";
import { createService, type SimulatedService } from "../../../src/simulator/http/service.ts";
import { actualNode, actualNodes, rateLimitedCount } from "../../../src/simulator/inspection.ts";
import { createInterventions } from "../../../src/simulator/intervention.ts";
import type { PostgresCluster } from "../../harness/postgres-cluster.ts";
import { startTcpProxy, type TcpProxy } from "../../harness/tcp-proxy.ts";
import { type MetricsPage, parseMetricsPage } from "../metrics-page.ts";
import { COMPILE_CACHE, type RunningProcess, spawnProcess, waitForStderr } from "../process.ts";
import type { CrashPoint } from "../remediation/crash-point.ts";
import { ADMIN_TOKEN, rebootOffline } from "../remediation/healing-daemon.ts";
import { type PostHooks, type PostRequest, startServiceProxy } from "../remediation/recording-proxy.ts";
import { configText } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** What a process of a group is started with. */
export interface SharedDaemonOptions {
  readonly config: string;
  /** Its name in the lease and in its requests. */
  readonly name: string;
  /** Time of the service and of the daemons runs this many times as fast as real time. */
  readonly speed: number;
  /** When the wall clock of the group showed the real time. */
  readonly startedAt: EpochMs;
  /** How far its wall clock is ahead. */
  readonly clockSkewMs: DurationMs;
  /** The lease as the database measures it, in real time. */
  readonly leaseMs: DurationMs;
  /** Where it kills itself; null: nowhere. */
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

/** A POST that reached the service. */
export interface ReceivedPost extends PostRequest {
  /** Who held the lease last, according to the database, when it arrived; null: the database was down. */
  readonly leader: string | null;
}

/** An action, as `GET /api/v1/actions` shows it. */
export interface ActionRow {
  readonly state: string;
  readonly outcome: string | null;
  readonly in_doubt: boolean;
}

/** One daemon of a group. */
export interface Member extends RunningProcess {
  readonly name: string;
  /** Its way to the database. */
  readonly database: TcpProxy;
  ask(path: string, init?: RequestInit): Promise<Response>;
  get<T>(path: string): Promise<T>;
  /** Sends an operator command. */
  order(path: string, body?: object): Promise<{ readonly status: number; readonly json: { readonly message: string } }>;
  scrape(): Promise<MetricsPage>;
  /** Whether it leads; false if it does not answer. */
  isLeading(): Promise<boolean>;
  /** Whether it leads, trusts its fleet data, and can write the journal: it would act now. */
  isHealing(): Promise<boolean>;
  /** Returns the actions on a node, without those that were withdrawn because a busy machine delayed the walks. */
  actionsOf(node: string): Promise<readonly ActionRow[]>;
}

/** Daemons as processes on one real database, against one simulated service over HTTP. */
export interface ProcessGroup {
  readonly service: SimulatedService;
  readonly schema: string;
  /** All POSTs, in order. */
  readonly posts: readonly ReceivedPost[];
  /** Returns the daemons that run. */
  members(): readonly Member[];
  /** Starts a daemon. `script`: another version of `shared-daemon.ts`. */
  start(
    name: string,
    options?: Partial<Pick<SharedDaemonOptions, "clockSkewMs" | "crash">> & { readonly script?: string },
  ): Promise<Member>;
  setHooks(hooks: PostHooks): void;
  /** Returns the id of a node that was not returned before. */
  pickNode(): string;
  /** Makes a node fail until it is rebooted; absent: any that did not fail before. Returns its id. */
  failNode(node?: string): string;
  status(node: string): string;
  /** Waits until a daemon would act, and returns it. */
  untilHealing(): Promise<Member>;
  /** Waits until the node was healed by an action. */
  untilHealed(node: string): Promise<void>;
  /** Returns how the laws of several daemons were violated, from the service's side. */
  violations(): Promise<readonly string[]>;
  /** Kills the daemons, and stops the service. */
  stop(): Promise<void>;
}

/** Processes start slowly on a busy machine. */
const WAIT_MS: DurationMs = 90 * SECOND_MS;
/** A daemon that is stopped does not answer. */
const ANSWER_MS_MAX: DurationMs = 2 * SECOND_MS;
const NEVER_MS: DurationMs = 1_000_000 * DAY_MS;
const NODES = 60;
const SCRIPT = fileURLToPath(new URL("shared-daemon.ts", import.meta.url));

let groups = 0;

/** Probes until there is a result, and returns it. Throws after a minute and a half, with `what` was expected. */
export const until = <T>(what: () => string, probe: () => Promise<T | null | undefined | false> | T | null | false) =>
  waitUntil(what, probe, WAIT_MS);

/** Starts the service, on a new schema of the cluster, without a daemon. The caller stops it. */
export async function startProcessGroup(
  cluster: PostgresCluster,
  { speed = 20, leaseMs = 4 * SECOND_MS, walkEveryMs = 6 * SECOND_MS }: ProcessGroupOptions = {},
): Promise<ProcessGroup> {
  groups++;
  const schema = `group_${groups}`;
  const clock = createScaledClock(createSystemClock(), speed);
  const startedAt = clock.now();
  const service = createService(
    {
      ...defaultScenario,
      ...{ nodes: NODES, sessions: 12 },
      rates: {
        ...defaultScenario.rates,
        faultEveryMs: NEVER_MS,
        maintenanceEveryMs: NEVER_MS,
        rebootMs: 2 * SECOND_MS,
      },
      service: { ...defaultScenario.service, plan: "enterprise" },
    },
    startedAt,
  );
  const server = await startServer(service, clock, { port: 0 });
  const serviceProxy = await startServiceProxy(server.url);
  const folder = mkdtempSync(join(tmpdir(), "group-"));
  const interventions = createInterventions(service, clock.now);
  const posts: ReceivedPost[] = [];
  const all: Member[] = [];
  const ended = new Set<string>();
  const members = () => all.filter(({ name }) => !ended.has(name));
  const picked = new Set<string>();
  const pickNode = (): string => {
    const node = [...actualNodes(service)].find(({ id, status }) => status === "online" && !picked.has(id))!.id;
    picked.add(node);
    return node;
  };
  const setHooks = ({ arrived, answered }: PostHooks) =>
    serviceProxy.setHooks({
      async arrived(post) {
        const rows = await cluster.query(`SELECT holder FROM ${schema}.leases`).catch(() => []);
        posts.push({ ...post, leader: rows.length === 0 ? null : String(rows[0]!.holder) });
        return (await arrived?.(post)) ?? true;
      },
      ...(answered === undefined ? {} : { answered }),
    });
  setHooks({});
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const sections = {
    service: { timeout: "1m" },
    collect: {
      nodes: { every: formatDuration(walkEveryMs) },
      details: { max_age: "1d" },
      sessions: { every: "1h" },
      stats: { every: "1h" },
    },
    web: { admin_token_file: write("admin", ADMIN_TOKEN) },
    policies: [write("policies.yaml", JSON.stringify({ policies: [policyFor(walkEveryMs)] }))],
    safety: SAFETY,
  };
  const first = <T>(test: (member: Member) => Promise<T | false>): Promise<T | null> =>
    Promise.all(members().map(test)).then((found) => found.find((each) => each !== false) ?? null) as Promise<T | null>;
  const logs = () => all.map(({ name, err }) => `${name}:\n${err()}`).join("\n");
  return {
    ...{ service, schema, posts, members, setHooks, pickNode },
    async start(name, { clockSkewMs = 0, crash = null, script = SCRIPT } = {}) {
      const database = await startTcpProxy(cluster.port);
      const url_file = write(`${name}.url`, cluster.url({ port: database.port }));
      // The lease is renewed on the daemon's clock.
      const lease = formatDuration(leaseMs * speed);
      const text = configText(serviceProxy.url, { ...sections, state: { postgres: { url_file, schema, lease } } });
      const config = write(`${name}.yaml`, text);
      const options: SharedDaemonOptions = { config, name, speed, startedAt, clockSkewMs, leaseMs, crash };
      const child = spawnProcess(process.execPath, [script, JSON.stringify(options)], "", COMPILE_CACHE);
      const member = await memberOf(name, child, database).catch(async (error) => {
        await database.close();
        throw error;
      });
      all.push(member);
      void member.ended.then(() => ended.add(name));
      return member;
    },
    failNode(node = pickNode()) {
      interventions.startFailure(node, { failureMode: "outage", remedy: "reboot" });
      return node;
    },
    status: (node) => actualNode(service, node)!.status,
    untilHealing: () =>
      until(
        () => `a daemon would act:\n${logs()}`,
        () => first(async (member) => (await member.isHealing()) && member),
      ),
    async untilHealed(node) {
      await until(
        () => `${node} is healed:\n${logs()}`,
        () =>
          first(async (member) => {
            const isLeading = await member.isLeading();
            return isLeading && (await member.actionsOf(node)).some(({ outcome }) => outcome === "verified");
          }),
      );
    },
    async violations() {
      const sent = posts.map(({ path, body }) => `${path} ${body}`);
      const [counted] = await cluster.query(`SELECT COALESCE(sum(used), 0)::int AS used FROM ${schema}.calls`);
      const isUncounted = service.serial > Number(counted!.used);
      const rejected = rateLimitedCount(service);
      return [
        ...sent.filter((step, index) => sent.indexOf(step) < index).map((step) => `sent twice: ${step}`),
        ...posts
          .filter(({ leader, userAgent }) => leader !== null && !userAgent.endsWith(`/${leader}`))
          .map(({ path, userAgent, leader }) => `sent by ${userAgent} while ${leader} led: ${path}`),
        ...(rejected > 0 ? [`${rejected} calls were answered with 429`] : []),
        ...(isUncounted ? [`of ${service.serial} calls, ${counted!.used} are counted in the month`] : []),
      ];
    },
    async stop() {
      for (const { kill } of all) kill("SIGKILL");
      await Promise.all(all.map(({ ended, database }) => Promise.all([ended, database.close()])));
      serviceProxy.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Limits that hold nothing, except that one action is in flight. */
const SAFETY = {
  ...{ mode: "enforce", storm_cooldown: "0s", canary: false, cooldown: "0s" },
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

async function memberOf(name: string, child: RunningProcess, database: TcpProxy): Promise<Member> {
  const url = await Promise.race([
    waitForStderr(child, /"url":"(http:[^"]+)"/, WAIT_MS).then((match) => match[1]!),
    child.ended.then(({ err }) => Promise.reject(new Error(`${name} ended:\n${err}`))),
  ]);
  const ask: Member["ask"] = (path, init) => fetch(url + path, init);
  const scrape = async () =>
    parseMetricsPage(await (await ask("/metrics", { signal: AbortSignal.timeout(ANSWER_MS_MAX) })).text());
  const shows = (...metrics: readonly string[]) =>
    scrape().then(
      (page) => metrics.every((metric) => page.sum(metric) === 1),
      () => false,
    );
  const get: Member["get"] = async (path) =>
    (await ask(path, { signal: AbortSignal.timeout(5 * ANSWER_MS_MAX) })).json() as Promise<never>;
  return {
    ...child,
    ...{ name, database, ask, get, scrape },
    isLeading: () => shows("proxywarden_leader"),
    isHealing: () => shows("proxywarden_leader", "proxywarden_trusted", "proxywarden_journal_writable"),
    async order(path, body = {}) {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
      const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: response.status, json: (await response.json()) as { readonly message: string } };
    },
    async actionsOf(node) {
      const { data } = await get<{ readonly data: readonly ActionRow[] }>(`/api/v1/actions?node=${node}`);
      return data.filter(({ state }) => state !== "withdrawn");
    },
  };
}
