import { globSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { parseDuration, SECOND_MS } from "../../src/base/duration.ts";
import { VERSION } from "../../src/cli/context.ts";
import { loadScenario } from "../../src/config/schema/scenario.ts";
import { parseDatabaseUrl } from "../../src/journal/postgres/url.ts";
import { SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { SITES } from "../../src/simulator/fleet/locations.ts";
import { orThrow } from "../harness/or-throw.ts";
import { startProcess } from "../integration/process.ts";
import { startNetwork } from "../integration/simulated-network.ts";
import { documentOf, inRepository, isInRepository, parseCommand, parseRepositoryConfig, textOf } from "./manifest.ts";

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly profiles?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly ports: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly networks?: { readonly default: { readonly aliases: readonly string[] } };
  readonly healthcheck: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
}

const compose = documentOf<Compose>("compose.yaml");
const service = (name: string): Service => compose.services[name]!;
const services = Object.entries(compose.services);

/** A volume as `source:target[:mode]`. */
function mountOf(volume: string) {
  const [source, target, mode] = volume.split(":");
  return { source: source!, target: target!, isReadOnly: mode === "ro", isNamed: !source!.startsWith(".") };
}

/** Returns the path of a container's file in the repository, or null if it is not mounted from there. */
function mountedFrom({ volumes }: Service, path: string): string | null {
  const mount = volumes
    .map(mountOf)
    .find(({ target, isNamed }) => !isNamed && (path === target || path.startsWith(`${target}/`)));
  return mount === undefined ? null : posix.join(mount.source, path.slice(mount.target.length));
}

/** The services that start with a profile. */
const withProfile = (profile: string) =>
  services.filter(([, { profiles = [profile] }]) => profiles.includes(profile)).map(([name]) => name);
const PAIR = ["proxywarden-1", "proxywarden-2"];

// Each program has a port: ours from its configuration and options, the others by default.
const ownConfig = parseRepositoryConfig("deploy/compose/proxywarden.yaml", service("proxywarden").environment);
const pairConfig = parseRepositoryConfig("deploy/compose/proxywarden-ha.yaml", service("proxywarden-1").environment);
const portsOf: Readonly<Record<string, () => Promise<number>>> = {
  proxywarden: async () => ownConfig.config.web.listen.port,
  "proxywarden-1": async () => pairConfig.config.web.listen.port,
  "proxywarden-2": async () => pairConfig.config.web.listen.port,
  postgres: async () => 5432,
  simulator: async () => Number((await parseCommand(service("simulator").command!)).options.port),
  prometheus: async () => 9090,
  alertmanager: async () => 9093,
  grafana: async () => 3000,
};

describe.each(services)("%s", (name, made) => {
  test("has a pinned version and no unnecessary privileges", () => {
    // The second part of a version of PostgreSQL is the patch.
    expect(made.image).toMatch(name === "postgres" ? /^postgres:\d+\.\d+$/ : /^[a-z/]+:v?\d+\.\d+\.\d+$/);
    if (made.build !== undefined) expect(made.image).toBe(`proxywarden:${VERSION}`);
    expect(made).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      restart: "unless-stopped",
    });
  });

  test("is published on the port that it listens on, for this machine only", async () => {
    const port = await portsOf[name]!();
    const published = name === "proxywarden-2" ? 9715 : port;
    expect(made.ports).toEqual([`127.0.0.1:${published}:${port}`]);
  });

  test("mounts existing files, and writes only to a declared volume", () => {
    for (const { source, isNamed, isReadOnly } of made.volumes.map(mountOf)) {
      expect({ source, isReadOnly }).toEqual({ source, isReadOnly: !isNamed });
      expect(isNamed ? source in compose.volumes : isInRepository(source), source).toBe(true);
    }
  });

  test("has a health check, and waits for services that have one", () => {
    expect(made.healthcheck.test[0]).toBe("CMD");
    for (const [other, { condition }] of Object.entries(made.depends_on ?? {})) {
      expect(Object.keys(compose.services)).toContain(other);
      expect(condition).toBe("service_healthy");
    }
  });
});

test("every declared volume is mounted where its program writes", () => {
  const writers = services.flatMap(([name, { volumes }]) =>
    volumes
      .map(mountOf)
      .filter(({ isNamed }) => isNamed)
      .map(({ source, target }) => `${name} ${source} ${target}`),
  );
  expect(writers).toEqual([
    `proxywarden state ${ownConfig.config.state.path}`,
    "postgres postgres /var/lib/postgresql/data",
    "prometheus prometheus /prometheus",
    "alertmanager alertmanager /alertmanager",
    "grafana grafana /var/lib/grafana",
  ]);
  expect(service("prometheus").command).toContain("--storage.tsdb.path=/prometheus");
  expect(service("alertmanager").command).toContain("--storage.path=/alertmanager");
  expect(Object.keys(compose.volumes)).toEqual(["state", "postgres", "prometheus", "alertmanager", "grafana"]);
});

test("the files that commands name are mounted", () => {
  const named = services.flatMap(([, made]) =>
    (made.command ?? [])
      .map((argument) => argument.replace(/^--config\.file=/, ""))
      .filter((argument) => argument.startsWith("/"))
      .map((path) => mountedFrom(made, path)),
  );
  expect(named).toEqual([
    "deploy/compose/scenario.yaml",
    "deploy/compose/proxywarden-ha.yaml",
    "deploy/compose/proxywarden-ha.yaml",
    "config/prometheus/prometheus.yml",
    "config/prometheus/alertmanager.yml",
  ]);
  expect(named.filter((path) => path === null || !isInRepository(path))).toEqual([]);
});

test("without a profile there is one daemon on SQLite; with the profile ha there are two on PostgreSQL instead", () => {
  const beside = ["prometheus", "alertmanager", "grafana"];
  const byDefault = /^COMPOSE_PROFILES=(\w+)$/m.exec(textOf(".env"))![1]!;
  expect(withProfile(byDefault)).toEqual(["simulator", "proxywarden", ...beside]);
  expect(withProfile("ha")).toEqual(["simulator", ...PAIR, "postgres", ...beside]);
  const { ports: published } = service("proxywarden-2");
  expect(service("proxywarden-1").ports).not.toEqual(published);
});

test("the two daemons are configured as the single one, except for their state, and have the database's URL", () => {
  const shown = ({ config: { state: _, ...config }, policies, warnings }: typeof ownConfig) => ({
    config,
    policies,
    warnings,
  });
  expect(shown(pairConfig)).toEqual(shown(ownConfig));
  for (const name of PAIR) expect(service(name).environment).toEqual(service("proxywarden").environment);
  const { POSTGRES_USER: user, POSTGRES_PASSWORD: password } = service("postgres").environment!;
  expect(textOf("deploy/compose/postgres_url").trim()).toBe(
    `postgresql://${user}:${password}@postgres:5432/${user}?sslmode=disable`,
  );
  expect(parseDatabaseUrl(textOf("deploy/compose/postgres_url").trim())).toMatchObject({ ok: true });
});

test("our commands are parsed by our own command line, and find the mounted configuration", async () => {
  const simulate = await parseCommand(service("simulator").command!);
  expect(simulate).toMatchObject({ name: "simulate", options: { host: "0.0.0.0" } });
  const run = await parseCommand(service("proxywarden").command!);
  expect(run.name).toBe("run");
  for (const name of PAIR) expect(await parseCommand(service(name).command!)).toMatchObject({ name: "run" });
  expect(mountedFrom(service("proxywarden"), String(run.options.config))).toBe("deploy/compose/proxywarden.yaml");
  const [, program, ...healthcheck] = service("proxywarden").healthcheck.test;
  expect(program).toBe("proxywarden");
  const { name, options } = await parseCommand(healthcheck);
  expect({ name, ...options }).toEqual({
    name: "healthcheck",
    url: `http://127.0.0.1:${ownConfig.config.web.listen.port}`,
  });
});

test("the configuration is valid, acts, and uses the ports of the other services", async () => {
  const { config, warnings, policies } = ownConfig;
  expect(warnings).toEqual([]);
  expect(config.safety.mode).toBe("enforce");
  expect(policies.length).toBeGreaterThan(2);
  expect(config.web.listen.host).toBe("0.0.0.0");
  expect(config.service.base_url).toBe(`http://simulator:${await portsOf.simulator!()}`);
  expect([config.prometheus?.url, config.alertmanager?.url]).toEqual([
    "http://prometheus:9090",
    "http://alertmanager:9093",
  ]);
  expect(textOf("deploy/compose/simulation_token").trim()).not.toBe("");
});

test("the scenario is valid: it has the daemon's key, the daemon's plan, and regions that exist", () => {
  const file = "deploy/compose/scenario.yaml";
  const scenario = orThrow(loadScenario({ file, text: textOf(file), env: {} }));
  expect(service("proxywarden").environment?.PROXYWARDEN_API_KEY).toBe(SIMULATION_KEY);
  expect(scenario.keys.map(({ key }) => key)).toEqual([SIMULATION_KEY]);
  expect(ownConfig.config.limits.plan).toBe(scenario.service.plan);
  const regions = new Set(SITES.map(({ region }) => region));
  const named = scenario.faults.flatMap(({ fault }) => (fault.kind === "region_dark" ? [fault.region] : []));
  expect(named).toHaveLength(1);
  expect(named.filter((region) => !regions.has(region))).toEqual([]);
});

test("the simulator's health check sees a service that answers, and one that does not", async () => {
  const { url } = await startNetwork();
  const [, program, ...args] = service("simulator").healthcheck.test;
  expect(program).toBe("/nodejs/bin/node");
  const check = (where: string) =>
    startProcess(
      process.execPath,
      args.map((argument) => argument.replace("http://127.0.0.1:9714", where)),
    ).ended;
  const [well, gone] = await Promise.all([check(url), check("http://127.0.0.1:1")]);
  expect([well.code, gone.code]).toEqual([0, 1]);
});

test("the daemon has more time to stop than it needs", () => {
  const grace = parseDuration(service("proxywarden").stop_grace_period!);
  expect(grace.ok && grace.value).toBeGreaterThan(10 * SECOND_MS);
});

test("Prometheus scrapes the daemon or both, and tells this Alertmanager", () => {
  const prometheus = textOf(mountedFrom(service("prometheus"), "/etc/prometheus/prometheus.yml")!);
  expect(prometheus).toMatch(/\bproxywarden:9713\b/);
  expect(prometheus).toMatch(/\balertmanager:9093\b/);
  const [first, second] = PAIR;
  expect(service(first!).networks?.default.aliases).toEqual(["proxywarden"]);
  expect(prometheus).toContain(`dns_sd_configs: [{ names: [${second}], type: A, port: 9713 }]`);
});

test("Grafana's provider looks where the dashboards are mounted, and its data source is this Prometheus", () => {
  const folder = mountedFrom(service("grafana"), "/etc/grafana/provisioning")!;
  const texts = (kind: string) =>
    globSync(`${folder}/${kind}/*.y*ml`, { cwd: inRepository(".") })
      .map(textOf)
      .join("\n");
  const [, path] = /\bpath:\s*["']?([^\s"',}]+)/.exec(texts("dashboards")) ?? [];
  expect(mountedFrom(service("grafana"), String(path))).toMatch(/^grafana\/dashboards/);
  expect(texts("datasources")).toContain("http://prometheus:9090");
  expect(texts("datasources")).toMatch(/url: postgres:5432\n.*user: grafana\b/);
  const { PROXYWARDEN_POSTGRES_PASSWORD: password } = service("grafana").environment!;
  expect(textOf("deploy/compose/postgres/grafana.sql")).toContain(`CREATE ROLE grafana LOGIN PASSWORD '${password}'`);
});
