import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { type PostgresCluster, startPostgres } from "../../harness/postgres-cluster.ts";
import { type MetricsPage, parseMetricsPage } from "../metrics-page.ts";
import { startScript, waitForStderr } from "../process.ts";
import { ADMIN_TOKEN, type HealingSetup, rebootOffline, startHealingSetup } from "../remediation/healing-daemon.ts";
import { waitUntil } from "../wait-until.ts";

const SPEED = 20;
/** In real time. Processes on a busy machine may stand still for seconds. */
const LEASE_MS: DurationMs = 5 * SECOND_MS;
/** Processes start slowly on a busy machine. */
const WAIT_MS: DurationMs = 90 * SECOND_MS;
const TEST_MS_MAX = 300_000;

let cluster: PostgresCluster;
let schemas = 0;
beforeAll(async () => {
  cluster = await startPostgres(["fsync = off"]);
}, 60_000);
afterAll(() => cluster.remove());

type Member = Awaited<ReturnType<typeof startMember>>;

/** Starts two daemons on one database, and waits until one leads and trusts its fleet data. */
async function startPair() {
  const setup = await startHealingSetup({ speed: SPEED });
  schemas++;
  const url_file = setup.folder.write("postgres_url", cluster.url());
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration has the environment variable.
  const postgres = { url_file, schema: `group_${schemas}`, lease: "5s", instance: "${NAME}" };
  const policy = rebootOffline({ for: "3s", clear_for: "3s", within: "2m" });
  const { file } = setup.writeConfig([policy], { state: { postgres } });
  const daemons = await Promise.all(["one", "two"].map((name) => startMember(file, name)));
  const leader = await findLeader(daemons);
  await untilItHeals(leader);
  return { setup, leader, standby: daemons.find((daemon) => daemon !== leader)! };
}

const findLeader = (daemons: readonly Member[]): Promise<Member> =>
  waitUntil(
    "a daemon leads",
    async () => {
      for (const daemon of daemons) if (isLeader(await daemon.scrape())) return daemon;
      return null;
    },
    WAIT_MS,
  );

async function startMember(file: string, name: string) {
  const script = fileURLToPath(new URL("shared-daemon.ts", import.meta.url));
  const process = startScript(script, [file, String(SPEED), String(LEASE_MS)], { NAME: name });
  const [, url] = await waitForStderr(process, /"url":"(http:[^"]+)"/);
  const ask = (path: string, init?: RequestInit) => fetch(url! + path, init);
  return {
    ...process,
    name,
    ask,
    scrape: async () => parseMetricsPage(await (await ask("/metrics")).text()),
    get: async <T>(path: string) => (await (await ask(path)).json()) as T,
    order: async (path: string, body: object = {}) => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
      const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: response.status, json: (await response.json()) as { readonly message: string } };
    },
  };
}

const isLeader = (page: MetricsPage) => page.sum("proxywarden_leader") === 1;

/** Waits until a daemon leads and its fleet data is trusted. */
const untilItHeals = (daemon: Member) =>
  waitUntil(
    () => `${daemon.name} leads and trusts its data:\n${daemon.err()}`,
    async () => {
      const page = await daemon.scrape();
      return isLeader(page) && page.sum("proxywarden_trusted") === 1;
    },
    WAIT_MS,
  );

const failFirstNode = (setup: HealingSetup): string => {
  const node = setup.nodes[0]!;
  setup.interventions.startFailure(node, { failureMode: "outage", remedy: "reboot" });
  return node;
};

interface ActionRow {
  readonly state: string;
  readonly outcome: string | null;
  readonly in_doubt: boolean;
}

/** Returns the actions on a node, without those that were withdrawn because a busy machine delayed the walks. */
async function actionsOf(daemon: Member, node: string): Promise<readonly ActionRow[]> {
  const { data } = await daemon.get<{ readonly data: readonly ActionRow[] }>(`/api/v1/actions?node=${node}`);
  return data.filter(({ state }) => state !== "withdrawn");
}

const untilHealed = (daemon: Member, node: string) =>
  waitUntil(
    () => `the node is healed:\n${daemon.err()}`,
    async () => (await actionsOf(daemon, node)).some(({ outcome }) => outcome === "verified"),
    WAIT_MS,
  );

test(
  "the leader exports the network, and a standby shows the journal, names the leader and forwards commands to it",
  async () => {
    const { setup, leader, standby } = await startPair();
    const node = failFirstNode(setup);
    await untilHealed(leader, node);
    const [leading, standing] = [await leader.scrape(), await standby.scrape()];
    expect([leading.sum("proxynet_nodes"), standing.sum("proxynet_nodes")]).toEqual([40, null]);
    expect([isLeader(leading), isLeader(standing)]).toEqual([true, false]);
    expect((await standby.ask("/-/ready")).status).toBe(200);
    const { name } = leader;
    const url = `http://${name}.example.net`;
    expect(await standby.get("/api/v1/status")).toMatchObject({ nodes: null, leader: { is_this: false, name, url } });
    expect(await leader.get("/api/v1/status")).toMatchObject({ nodes: { total: 40 }, leader: { is_this: true, name } });
    expect(await actionsOf(standby, node)).toEqual(await actionsOf(leader, node));
    expect(await standby.get(`/api/v1/nodes/${node}`)).toMatchObject({ known: false, decisions: expect.any(Array) });

    const reason = { reason: "deploy until 14:00" };
    const paused = await standby.order("/api/v1/pause", reason);
    expect(paused.status).toBe(200);
    expect(paused.json.message).toMatch(
      new RegExp(`^paused: deploy until 14:00; .*; executed by ${name} \\(${url}\\)$`),
    );
    const operator = "admin";
    expect(await leader.get("/api/v1/status")).toMatchObject({ warden: { paused: { ...reason, operator } } });
    await waitUntil("the standby shows the pause", async () => {
      const { warden } = await standby.get<{ readonly warden: { readonly paused: unknown } }>("/api/v1/status");
      return warden.paused;
    });
    expect(await standby.order("/api/v1/actions/act-999/approve")).toMatchObject({ status: 404 });
    expect((await standby.ask("/api/v1/pause", { method: "POST" })).status).toBe(401);
    leader.kill("SIGSTOP");
    // Answered with the id of the order, or by this daemon itself if it has taken over by then.
    expect([200, 202]).toContain((await standby.order("/api/v1/resume")).status);
  },
  TEST_MS_MAX,
);

test(
  "a leader that is killed during a POST is succeeded: the POST is in doubt, is verified, and is not sent again",
  async () => {
    const { setup, leader, standby } = await startPair();
    setup.serviceProxy.setHooks({
      async answered() {
        leader.kill("SIGKILL");
        await leader.ended;
      },
    });
    const node = failFirstNode(setup);
    await waitUntil("the POST is under way", () => setup.serviceProxy.postRequests.length > 0, WAIT_MS);
    await leader.ended;
    setup.serviceProxy.setHooks({});
    await untilHealed(standby, node);
    expect(await actionsOf(standby, node)).toMatchObject([{ outcome: "verified", in_doubt: true }]);
    expect(setup.serviceProxy.postRequests).toHaveLength(1);
  },
  TEST_MS_MAX,
);

test(
  "a leader that is stopped for longer than its lease during a POST goes on as a standby, and sends nothing more",
  async () => {
    const { setup, leader, standby } = await startPair();
    setup.serviceProxy.setHooks({
      async answered() {
        leader.kill("SIGSTOP");
      },
    });
    const node = failFirstNode(setup);
    await waitUntil("the POST is under way", () => setup.serviceProxy.postRequests.length > 0, WAIT_MS);
    await waitUntil("the other one leads", async () => isLeader(await standby.scrape()), WAIT_MS);
    setup.serviceProxy.setHooks({});
    leader.kill("SIGCONT");
    await waitUntil(
      () => `the first one stands by:\n${leader.err()}`,
      async () => (await leader.scrape()).sum("proxynet_nodes") === null,
      WAIT_MS,
    );
    await untilHealed(standby, node);
    expect(setup.serviceProxy.postRequests).toHaveLength(1);
    // The other one hands over when it ends.
    standby.kill("SIGTERM");
    expect((await standby.ended).code).toBe(0);
    await untilItHeals(leader);
  },
  TEST_MS_MAX,
);

test(
  "while the database is down no daemon leads or takes a step, and one heals once the database is back",
  async () => {
    const { setup, leader, standby } = await startPair();
    await cluster.stop("immediate");
    await waitUntil("no daemon leads", async () => !isLeader(await leader.scrape()), WAIT_MS);
    const node = failFirstNode(setup);
    expect([(await leader.ask("/-/healthy")).status, (await standby.ask("/-/healthy")).status]).toEqual([200, 200]);
    expect((await leader.ask("/-/ready")).status).toBe(503);
    expect(setup.serviceProxy.postRequests).toEqual([]);
    await cluster.start();
    await untilHealed(await findLeader([leader, standby]), node);
    expect(setup.serviceProxy.postRequests).toHaveLength(1);
  },
  TEST_MS_MAX,
);
