import { createServer } from "node:net";
import { createTempFolder } from "../folder.ts";
import { type RunningProcess, requireProgram, startProcess } from "../process.ts";
import { waitUntil } from "../wait-until.ts";

/** A value that a query of Prometheus gave. */
export interface Series {
  readonly value: readonly [at: number, value: string];
}

/** Debian's Prometheus. */
export interface Prometheus {
  readonly url: string;
  /** What a path below `/api/v1/` answers. */
  get<T>(path: string): Promise<T>;
  query(query: string): Promise<readonly Series[]>;
}

/** A configuration with one target that is scraped every second. What is JSON is YAML. */
const scrapeConfig = (target: string, job: object): string =>
  JSON.stringify({
    global: { scrape_interval: "1s", scrape_timeout: "1s" },
    scrape_configs: [{ job_name: "w", static_configs: [{ targets: [target] }], ...job }],
  });

/** Starts Prometheus on one target, that it scrapes every second; it ends with the test. `job`: how, beside that. */
export const startPrometheus = (target: string, port?: number, job: object = {}): Promise<Prometheus> =>
  runPrometheus(scrapeConfig(target, job), port);

/**
 * Starts Prometheus on a folder and a configuration of its own; it ends with the test. It begins to scrape some five
 * seconds after its start.
 */
export async function runPrometheus(configText: string, port?: number): Promise<Prometheus> {
  const folder = createTempFolder();
  const config = folder.write("prometheus.yml", configText);
  const address = `127.0.0.1:${port ?? (await freePort())}`;
  const prometheus = startProcess(requireProgram("/usr/bin/prometheus", "prometheus"), [
    `--config.file=${config}`,
    `--storage.tsdb.path=${folder.pathOf("data")}`,
    `--web.listen-address=${address}`,
  ]);
  const url = `http://${address}`;
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${url}/api/v1/${path}`);
    const answer = (await response.json()) as { status: string; data: T };
    if (answer.status !== "success") throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer.data;
  };
  await untilReady(url, prometheus);
  return {
    url,
    get,
    query: async (query) =>
      (await get<{ result: readonly Series[] }>(`query?query=${encodeURIComponent(query)}`)).result,
  };
}

/** An alert as Alertmanager shows it. */
interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly status: { readonly state: string };
}

/** Debian's Alertmanager. */
export interface Alertmanager {
  readonly url: string;
  /** The alerts that fire, those that are silenced too. */
  alerts(): Promise<readonly Alert[]>;
  /** Posts to a path below `/api/v2/`. */
  post(path: string, body: unknown): Promise<void>;
}

/** A configuration that tells nobody. */
const NULL_ROUTE_CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n";

/** Starts Alertmanager on a folder of its own, alone; it ends with the test. */
export async function startAlertmanager(port: number, configText = NULL_ROUTE_CONFIG): Promise<Alertmanager> {
  const folder = createTempFolder();
  const config = folder.write("alertmanager.yml", configText);
  const address = `127.0.0.1:${port}`;
  const alertmanager = startProcess(requireProgram("/usr/bin/prometheus-alertmanager", "prometheus-alertmanager"), [
    `--config.file=${config}`,
    `--storage.path=${folder.pathOf("data")}`,
    `--web.listen-address=${address}`,
    // No cluster: it would look for others.
    "--cluster.listen-address=",
  ]);
  const url = `http://${address}`;
  await untilReady(url, alertmanager);
  return {
    url,
    alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as readonly Alert[],
    async post(path, body) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${url}/api/v2/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`${path}: ${response.status}: ${await response.text()}`);
    },
  };
}

async function untilReady(url: string, process: RunningProcess): Promise<void> {
  await waitUntil(
    () => `${url} is ready; it said:\n${process.err()}`,
    () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
  );
}

/** A port that was free a moment ago, for a program that can't tell which one it took. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
