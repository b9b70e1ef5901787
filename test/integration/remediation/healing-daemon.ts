import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { DAY_MS, type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import type { ExplanationView } from "../../../src/web/api/remediation-views.ts";
import type { ActionView, DecisionView, EpisodeView } from "../../../src/web/api/row-views.ts";
import { type CommandOutput, runInProcess } from "../../cli/terminal.ts";
import { actualNode, actualNodes } from "../../harness/simulator/actual-state.ts";
import { createInterventions, type Interventions } from "../../harness/simulator/interventions.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { type RunningProcess, startScript } from "../process.ts";
import {
  type ConfigSections,
  configText,
  startNetwork,
  startTestDaemon,
  type TestDaemon,
  type TestNetwork,
} from "../simulated-network.ts";
import { type ServiceProxy, startServiceProxy } from "./recording-proxy.ts";

/** A simulated network in which nodes fail only when a test says so, and what a daemon needs to heal them. */
export interface HealingSetup {
  readonly network: TestNetwork;
  readonly interventions: Interventions;
  /** All calls of the daemon pass through it. */
  readonly serviceProxy: ServiceProxy;
  readonly folder: TempFolder;
  /** Ids of all nodes. */
  readonly nodes: readonly string[];
  status(node: string): string;
  /** Writes policies and configuration into the folder. */
  writeConfig(policies: readonly object[], sections?: ConfigSections): WrittenConfig;
}

/** A configuration file. */
export interface WrittenConfig {
  readonly file: string;
  readonly text: string;
}

/** A daemon in this process, and what its HTTP API shows. */
export interface RunningDaemon extends TestDaemon {
  /** Sends an operator command over HTTP; by default with the admin token. */
  sendCommand(path: string, body?: object, token?: string): Promise<JsonResponse>;
  /** Runs a CLI command against the daemon, with the admin token in a file. */
  runCli(...args: readonly string[]): Promise<CommandOutput>;
  /** Returns an empty explanation while the node is not known yet, right after a start. */
  explain(node: string): Promise<ExplanationView>;
  /** Returns all actions, oldest first, without those that were withdrawn because a busy machine delayed the walks. */
  actions(): Promise<readonly ActionView[]>;
  decisions(): Promise<readonly DecisionView[]>;
  /** Returns the last episode of a node, or undefined if it has none. */
  episode(node: string): Promise<EpisodeView | undefined>;
  /** Returns the reasons that would hold the next step on a node now. */
  reasons(node: string): Promise<readonly string[]>;
}

/** The response of a JSON route. */
export interface JsonResponse {
  readonly status: number;
  readonly json: unknown;
}

const EMPTY_EXPLANATION: ExplanationView = {
  known: false,
  explained_at: "",
  policies: [],
  holds: [],
  episodes: [],
  actions: [],
  decisions: [],
  orders: [],
};

/** Detail of an action that was withdrawn because the last walk is too old. */
const STALE_WALK_REASON = /^inventory_incomplete: the last complete walk of the nodes is \d+ s old/;

/** The admin token of the daemons. */
export const ADMIN_TOKEN = "open-sesame";

/** Default time of a reboot. */
const REBOOT_MS: DurationMs = 2 * SECOND_MS;
const NEVER_MS: DurationMs = 1_000_000 * DAY_MS;

/** Speed of time in the tests: what takes a real service minutes takes seconds. */
const SPEED = 20;

/** Starts the network and the proxy before it. */
export async function startHealingSetup({ speed = SPEED, rebootMs = REBOOT_MS } = {}): Promise<HealingSetup> {
  const rates = { ...defaultScenario.rates, faultEveryMs: NEVER_MS, maintenanceEveryMs: NEVER_MS, rebootMs };
  const network = await startNetwork({ speed, scenario: { sessions: 40, rates } });
  const serviceProxy = await startServiceProxy(network.url);
  onTestFinished(serviceProxy.close);
  const folder = createTempFolder();
  return {
    network,
    serviceProxy,
    folder,
    interventions: createInterventions(network.service, network.clock.now),
    nodes: [...actualNodes(network.service)].map(({ id }) => id),
    status: (node) => actualNode(network.service, node)!.status,
    writeConfig(policies, sections = {}) {
      const file = folder.pathOf("proxywarden.yaml");
      const text = configText(serviceProxy.url, { ...defaultSections(folder, policies), ...sections });
      folder.write("proxywarden.yaml", text);
      return { file, text };
    },
  };
}

/**
 * Waits are short, and limits have their defaults. Walks are as far apart as possible, because data is untrusted after
 * three intervals without one, and a busy machine delays walks.
 */
function defaultSections(folder: TempFolder, policies: readonly object[]): ConfigSections {
  return {
    service: { timeout: "1m" },
    collect: {
      nodes: { every: "6s" },
      details: { max_age: "1d" },
      sessions: { every: "1h" },
      stats: { every: "1h" },
    },
    web: { admin_token_file: folder.write("admin", `${ADMIN_TOKEN}\n`) },
    state: { path: folder.pathOf("state") },
    policies: [folder.write("policies.yaml", JSON.stringify({ policies }, null, 2))],
    safety: { mode: "enforce", storm_cooldown: "0s" },
  };
}

/** Starts a daemon in this process, with the state folder of the setup. */
export async function startDaemonFor(setup: HealingSetup, { text }: WrittenConfig): Promise<RunningDaemon> {
  const daemon = await startTestDaemon(setup.network.clock, text, ({ path }) => openSqliteStore(path!));
  const get = async <T>(path: string): Promise<T> => (await daemon.ask(path)).json() as Promise<T>;
  const explain: RunningDaemon["explain"] = async (node) => ({
    ...EMPTY_EXPLANATION,
    ...(await get(`/api/v1/nodes/${node}`)),
  });
  return {
    ...daemon,
    async sendCommand(path, body, token = ADMIN_TOKEN) {
      const headers = { authorization: `Bearer ${token}` };
      const response = await daemon.ask(path, {
        method: "POST",
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, json: await response.json() };
    },
    runCli: (...args) => runInProcess(...args, "--url", daemon.app.url(), "--token-file", setup.folder.pathOf("admin")),
    explain,
    async actions() {
      const { data } = await get<{ data: ActionView[] }>("/api/v1/actions");
      return data.toReversed().filter(({ detail }) => !STALE_WALK_REASON.test(detail ?? ""));
    },
    decisions: async () => (await get<{ data: DecisionView[] }>("/api/v1/decisions")).data.toReversed(),
    episode: async (node) => (await explain(node)).episodes[0],
    async reasons(node) {
      const { policies } = await explain(node);
      return policies.flatMap(({ blockers }) => blockers.map(({ reason }) => reason));
    },
  };
}

/** Starts a daemon in a process of its own. `at`: the process kills itself right before or after that boundary. */
export const startCrashingDaemon = ({ file }: WrittenConfig, ...at: readonly string[]): RunningProcess =>
  startScript(fileURLToPath(new URL("./crashable-daemon.ts", import.meta.url)), [file, String(SPEED), ...at]);

/**
 * Returns a policy that reboots offline nodes immediately, and by force if they are still offline after `within`, which
 * by default is longer than a busy machine takes.
 */
export const rebootOffline = ({ within = "5m", ...changed }: Readonly<Record<string, unknown>> = {}): object => ({
  name: "reboot-offline",
  mode: "enforce",
  when: 'node.status == "offline"',
  for: "0s",
  clear_for: "0s",
  max_age: "5m",
  steps: [
    { action: "reboot", verify: { within } },
    { action: "reboot", force: true, verify: { within } },
  ],
  ...changed,
});
