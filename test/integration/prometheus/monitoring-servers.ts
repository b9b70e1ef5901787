import { freePort } from "../../harness/servers/free-port.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { type RunningProcess, requireProgram, startProcess } from "../process.ts";
import { waitUntil } from "../wait-until.ts";

/** A result of a Prometheus query. */
export interface Series {
  readonly value: readonly [at: number, value: string];
}

/** A running Prometheus. */
export interface Prometheus {
  readonly url: string;
  /** Returns the data of a path below `/api/v1/`. */
  get<T>(path: string): Promise<T>;
  query(query: string): Promise<readonly Series[]>;
}

/** Returns a configuration that scrapes one target every second. JSON is valid YAML. */
const scrapeConfig = (target: string, job: object): string =>
  JSON.stringify({
    global: { scrape_interval: "1s", scrape_timeout: "1s" },
    scrape_configs: [{ job_name: "w", static_configs: [{ targets: [target] }], ...job }],
  });

/**
 * Starts a Prometheus that scrapes one target every second; it stops after the test. `job`: further keys of the scrape
 * job.
 */
export const startPrometheus = (target: string, port?: number, job: object = {}): Promise<Prometheus> =>
  runPrometheus(scrapeConfig(target, job), port === undefined ? {} : { port });

/** Options of {@link runPrometheus}. */
interface PrometheusOptions {
  /** Absent: a free one. */
  readonly port?: number;
  /** Folder with blocks, of any age; absent: an empty one. */
  readonly data?: string;
  readonly flags?: readonly string[];
}

/**
 * Starts Prometheus with a configuration; it stops after the test. The first scrape is about five seconds after the
 * start.
 */
export async function runPrometheus(
  configText: string,
  { port, data, flags = [] }: PrometheusOptions = {},
): Promise<Prometheus> {
  const folder = createTempFolder();
  const config = folder.write("prometheus.yml", configText);
  const address = `127.0.0.1:${port ?? (await freePort())}`;
  const prometheus = startProcess(requireProgram("/usr/bin/prometheus", "prometheus"), [
    `--config.file=${config}`,
    `--storage.tsdb.path=${data ?? folder.pathOf("data")}`,
    "--storage.tsdb.retention.time=100y",
    `--web.listen-address=${address}`,
    ...flags,
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

/** A running Alertmanager. */
export interface Alertmanager {
  readonly url: string;
  /** Returns the firing alerts, including silenced ones. */
  alerts(): Promise<readonly Alert[]>;
  /** Posts to a path below `/api/v2/`. */
  post(path: string, body: unknown): Promise<void>;
}

/** A configuration that notifies no receiver. */
const NULL_ROUTE_CONFIG = "route: {receiver: none}\nreceivers: [{name: none}]\n";

/** Starts Alertmanager without a cluster; it stops after the test. */
export async function startAlertmanager(port: number, configText = NULL_ROUTE_CONFIG): Promise<Alertmanager> {
  const folder = createTempFolder();
  const config = folder.write("alertmanager.yml", configText);
  const address = `127.0.0.1:${port}`;
  const alertmanager = startProcess(requireProgram("/usr/bin/prometheus-alertmanager", "prometheus-alertmanager"), [
    `--config.file=${config}`,
    `--storage.path=${folder.pathOf("data")}`,
    `--web.listen-address=${address}`,
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
    () => `${url} is ready; its log:\n${process.err()}`,
    () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
  );
}
