import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { VERSION } from "../../src/cli/context.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { CHART, renderChart, runHelm } from "./helm.ts";
import { type Deployment, type Labels, type NetworkPolicy, type Resource, renderKustomization } from "./kustomize.ts";
import { documentOf, inRepository, parseConfigText, textOf } from "./manifest.ts";
import { schemaProblems } from "./manifest-schema.ts";

const SERVICE = "config: { service: { base_url: https://proxy.example.net, usage_scale: ratio } }";
const SINGLE = `${SERVICE}\nexistingSecret: proxywarden`;
const PAIR = `${SINGLE}\nhighAvailability: { enabled: true }`;
const EVERYTHING = `${SERVICE}
secrets: { api_key: a, admin_token: b, postgres_url: c }
highAvailability: { enabled: true, postgres: { lease: 20s } }
networkPolicy: { enabled: true }
podMonitor: { enabled: true, labels: { release: prometheus }, endpoint: { honorTimestamps: true } }
prometheusRule: { enabled: true, labels: { release: prometheus }, runbookUrl: https://docs.example.net/runbook }
dashboards: { enabled: true, annotations: { grafana_folder: Proxywarden } }
image: { digest: "sha256:${"0".repeat(64)}" }
imagePullSecrets: [{ name: registry }]
env: [{ name: NAME, value: text }]
podLabels: { team: network }
podAnnotations: { note: text }
nodeSelector: { disk: ssd }
tolerations: [{ key: dedicated, operator: Exists }]
priorityClassName: high
`;

const ofKind = <T extends Resource>(resources: readonly Resource[], kind: string): readonly T[] =>
  resources.filter((resource): resource is T => resource.kind === kind);
type ConfigMap = Resource & { readonly data: Labels };
const kindsOf = (resources: readonly Resource[]) => resources.map(({ kind }) => kind).toSorted();

test("the chart has no finding of helm lint, and the version of the package", async () => {
  const { code, out } = await runHelm("lint", "--strict", inRepository(CHART));
  expect([code, out]).toEqual([0, expect.stringContaining("0 chart(s) failed")]);
  expect(documentOf(`${CHART}/Chart.yaml`)).toMatchObject({
    version: VERSION,
    appVersion: VERSION,
    description: (JSON.parse(textOf("package.json")) as { description: string }).description,
  });
});

test.each([
  ["a single daemon", SINGLE, ["ConfigMap", "Deployment", "PersistentVolumeClaim", "Service"]],
  ["a pair", PAIR, ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service"]],
])("by default %s is rendered with a configuration, a service and its state", async (_, values, kinds) => {
  expect(kindsOf(await renderChart(values))).toEqual(kinds);
});

test("every resource conforms to the schema of its kind", async () => {
  const resources = [...(await renderChart(SINGLE)), ...(await renderChart(EVERYTHING))];
  expect(await schemaProblems(resources)).toEqual([]);
});

describe.each([
  ["a single daemon", SINGLE, "deploy/kubernetes"],
  ["a pair", PAIR, "deploy/kubernetes/ha"],
])("%s", (_, values, folder) => {
  test("runs in the same pod as with Kustomize", async () => {
    const withoutDefaults = (text: string) =>
      text.replaceAll(/,"(?:scheme":"HTTP|imagePullPolicy":"IfNotPresent)"/g, "");
    const podOf = ([deployment]: readonly Deployment[]) => {
      const { replicas, strategy, minReadySeconds = null, template } = deployment!.spec as Deployment["spec"] & Spec;
      // Pods of a release are selected by its name as well.
      const pod = JSON.stringify(template.spec).replaceAll(',"app.kubernetes.io/instance":"proxywarden"', "");
      return { replicas, strategy, minReadySeconds, pod: JSON.parse(withoutDefaults(pod)) as object };
    };
    const expected = podOf(ofKind<Deployment>(renderKustomization(folder), "Deployment"));
    expect(podOf(ofKind<Deployment>(await renderChart(values), "Deployment"))).toEqual(expected);
  });

  test("reads a valid configuration that acts on no node", async () => {
    const [map] = ofKind<ConfigMap>(await renderChart(values), "ConfigMap");
    const policies = createTempFolder().write("policies.yaml", map!.data["policies.yaml"]!);
    const text = map!.data["proxywarden.yaml"]!.replace("- policies.yaml", `- ${policies}`);
    const loaded = parseConfigText("deploy/kubernetes/base/proxywarden.yaml", text);
    expect(loaded.warnings).toEqual([]);
    expect(loaded.config.safety.mode).toBe("dry_run");
    expect(loaded.policies.map(({ name, mode }) => [name, mode])).toEqual([["reboot-offline", "dry_run"]]);
  });

  test("has the same connections as with Kustomize, once they are restricted", async () => {
    const rulesOf = (resources: readonly Resource[]) => {
      const specs = ofKind<NetworkPolicy>(resources, "NetworkPolicy").map(({ spec }) => spec);
      return specs
        .flatMap(({ ingress = [], egress }) => [...ingress, ...egress])
        .map((rule) => JSON.stringify(rule, KEYS));
    };
    const rendered = rulesOf(await renderChart(`${values}\nnetworkPolicy: { enabled: true }`));
    expect(rendered.toSorted()).toEqual(rulesOf(renderKustomization(folder)).toSorted());
  });
});

interface Spec {
  readonly replicas: number;
  readonly strategy: object;
  readonly minReadySeconds?: number;
}
/** Keys of network policies in a fixed order. */
const KEYS = [
  ...["from", "to", "ports", "protocol", "port", "namespaceSelector", "podSelector", "matchLabels"],
  ...["kubernetes.io/metadata.name", "k8s-app"],
];

test.each([
  ["1.25", false],
  ["1.26", true],
])("with Kubernetes %s, the disruption budget has unhealthyPodEvictionPolicy: %s", async (version, hasPolicy) => {
  const values = createTempFolder().write("values.yaml", PAIR);
  const budget = ["--show-only", "templates/poddisruptionbudget.yaml", "--kube-version", version];
  const { code, out } = await runHelm("template", "proxywarden", inRepository(CHART), "--values", values, ...budget);
  expect(code).toBe(0);
  expect(out.includes("unhealthyPodEvictionPolicy")).toBe(hasPolicy);
});

test("empty lists of peers allow no connections but DNS", async () => {
  const none = "networkPolicy: { enabled: true, ingressFrom: [], egress: [], postgresTo: [] }";
  const [policy] = ofKind<NetworkPolicy>(await renderChart(`${PAIR}\n${none}`), "NetworkPolicy");
  expect(policy!.spec.policyTypes).toEqual(["Ingress", "Egress"]);
  expect(policy!.spec.ingress).toBeUndefined();
  expect(policy!.spec.egress).toMatchObject([{ ports: [{ port: 53 }, { port: 53 }] }]);
});

test("the dashboards need no label", async () => {
  const values = `${SINGLE}\ndashboards: { enabled: true, labels: { grafana_dashboard: null } }`;
  const labels = ofKind(await renderChart(values), "ConfigMap").map(({ metadata }) => metadata.labels ?? {});
  expect(labels).toHaveLength(4);
  for (const each of labels) expect(each).not.toHaveProperty("grafana_dashboard");
});

test("two releases in a namespace do not select each other's pods", async () => {
  const [deployment] = ofKind<Deployment>(await renderChart(SINGLE), "Deployment");
  const labels = { "app.kubernetes.io/name": "proxywarden", "app.kubernetes.io/instance": "proxywarden" };
  expect(deployment!.spec.selector.matchLabels).toEqual(labels);
  expect(deployment!.spec.template.metadata.labels).toMatchObject(labels);
});

test("the volume claim outlives the release, and another one can be used", async () => {
  const [claim] = ofKind(await renderChart(SINGLE), "PersistentVolumeClaim");
  expect(claim!.metadata).toMatchObject({ annotations: { "helm.sh/resource-policy": "keep" } });
  const resources = await renderChart(`${SINGLE}\npersistence: { existingClaim: other }`);
  expect(kindsOf(resources)).not.toContain("PersistentVolumeClaim");
  const [deployment] = ofKind<Deployment>(resources, "Deployment");
  expect(deployment!.spec.template.spec.volumes).toContainEqual({
    name: "state",
    persistentVolumeClaim: { claimName: "other" },
  });
});

test("an existing ConfigMap and Secret are mounted instead of the release's own", async () => {
  const resources = await renderChart("existingConfigMap: files\nexistingSecret: keys");
  expect(kindsOf(resources)).toEqual(["Deployment", "PersistentVolumeClaim", "Service"]);
  const [deployment] = ofKind<Deployment>(resources, "Deployment");
  expect(deployment!.spec.template.spec.volumes).toMatchObject([
    { configMap: { name: "files" } },
    { secret: { secretName: "keys" } },
    {},
  ]);
});

test("without policies, and with numbers as they were written, the configuration is what the values say", async () => {
  const [map] = ofKind<ConfigMap>(
    await renderChart(`${SINGLE}\npolicies: []`.replace("} }", "}, export: { series_max: 3000000 } }")),
    "ConfigMap",
  );
  expect(Object.keys(map!.data)).toEqual(["proxywarden.yaml"]);
  const config = parse(map!.data["proxywarden.yaml"]!) as object;
  expect(config).toMatchObject({ export: { series_max: 3_000_000 } });
  expect(config).not.toHaveProperty("policies");
});

test.each(["web: null", "web: { listen: null }"])(
  "a default of the configuration can be removed: %s",
  async (section) => {
    const values = SINGLE.replace("} }", `}, ${section} }`);
    const [map] = ofKind<ConfigMap>(await renderChart(values), "ConfigMap");
    expect(parse(map!.data["proxywarden.yaml"]!)).not.toHaveProperty(["web", "listen"]);
  },
);

test.each([
  ["", "set config.service.base_url to the URL of the management service"],
  [SERVICE, "set secrets.api_key, or existingSecret"],
  [`${SERVICE}\nsecrets: { api_key: a }`, "set secrets.admin_token, or existingSecret"],
  [
    `${SERVICE}\nsecrets: { api_key: a, admin_token: b }\nhighAvailability: { enabled: true }`,
    "set secrets.postgres_url",
  ],
  ["replicas: 2", "Additional property replicas is not allowed"],
  [`config: { state: { path: /tmp } }`, "config.state is set by the chart: use persistence or highAvailability"],
  [`config: { policies: [policies/*.yaml] }`, "config.policies is set by the chart: list the policies under policies"],
  [
    "config: { web: { listen: 127.0.0.1:9713 } }",
    "config.web.listen: probes and Prometheus can't reach 127.0.0.1:9713; use 0.0.0.0:9713",
  ],
  ["config: { web: { listen: 0.0.0.0:8080 } }", "config.web.listen: Does not match pattern"],
  ["highAvailability: { replicas: 1 }", "highAvailability.replicas: Must be greater than or equal to 2"],
])("values that can't work are refused: %j", async (values, message) => {
  await expect(renderChart(values)).rejects.toThrow(message);
});

describe("monitoring", () => {
  const monitoring = renderKustomization("deploy/kubernetes/monitoring");

  test("scrapes as with Kustomize", async () => {
    const specOf = (resources: readonly Resource[]) =>
      ofKind<Resource & { spec: object }>(resources, "PodMonitor")[0]!.spec;
    const [endpoint] = (specOf(monitoring) as { podMetricsEndpoints: readonly object[] }).podMetricsEndpoints;
    expect(specOf(await renderChart(EVERYTHING))).toEqual({
      ...specOf(monitoring),
      podTargetLabels: ["app.kubernetes.io/instance"],
      selector: {
        matchLabels: { "app.kubernetes.io/name": "proxywarden", "app.kubernetes.io/instance": "proxywarden" },
      },
      podMetricsEndpoints: [{ ...endpoint, scheme: "http", honorTimestamps: true }],
    });
  });

  test("the scrape timeout is never longer than the interval, because the Prometheus Operator ignores such a PodMonitor", async () => {
    const timeoutOf = async (values: string) =>
      JSON.stringify(ofKind(await renderChart(`${SERVICE}\nexistingSecret: s\n${values}`), "PodMonitor")).match(
        /"scrapeTimeout":"(\w+)"/,
      )?.[1];
    expect(await timeoutOf("podMonitor: { enabled: true, interval: 10s }")).toBe("10s");
    expect(await timeoutOf("podMonitor: { enabled: true, interval: 1m, scrapeTimeout: 20s }")).toBe("20s");
  });

  test("evaluates the same rules as with Kustomize, with links to the runbook where it is published", async () => {
    const rulesOf = (resources: readonly Resource[]) =>
      JSON.stringify(sorted(ofKind<Resource & { spec: object }>(resources, "PrometheusRule")[0]!.spec));
    const rendered = rulesOf(await renderChart(EVERYTHING));
    const published = '"runbook_url":"https://docs.example.net/runbook#';
    expect(rendered).toContain(published);
    expect(rendered).toBe(rulesOf(monitoring).replaceAll(/"runbook_url":"[^#]*#/g, published));
    const unchanged = rulesOf(await renderChart(`${SINGLE}\nprometheusRule: { enabled: true }`));
    expect(unchanged).toBe(rulesOf(monitoring));
  });

  test("has the same dashboards as with Kustomize; the one of the journal in PostgreSQL only for several daemons", async () => {
    const dashboardsOf = (resources: readonly Resource[]) =>
      ofKind<ConfigMap>(resources, "ConfigMap").filter(({ metadata }) => metadata.labels?.grafana_dashboard === "1");
    const dataOf = (resources: readonly Resource[]) =>
      Object.fromEntries(dashboardsOf(resources).map(({ metadata, data }) => [metadata.name, JSON.stringify(data)]));
    expect(dataOf(await renderChart(EVERYTHING))).toEqual(dataOf(monitoring));
    const ofSingle = Object.keys(dataOf(await renderChart(`${SINGLE}\ndashboards: { enabled: true }`)));
    expect(Object.keys(dataOf(monitoring)).filter((name) => !ofSingle.includes(name))).toEqual([
      "proxywarden-dashboard-audit",
    ]);
  });

  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value))
      return value.map(sorted).toSorted((one, other) => groupName(one).localeCompare(groupName(other)));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .toSorted(([one], [other]) => one.localeCompare(other))
        .map(([key, each]) => [key, sorted(each)]),
    );
  };
  const groupName = (value: unknown) => String((value as { name?: string }).name ?? "");
});

test("the packaged chart has the rules and dashboards, and renders the same", async () => {
  const folder = createTempFolder();
  expect((await runHelm("package", inRepository(CHART), "--destination", folder.path)).code).toBe(0);
  const file = folder.pathOf(`proxywarden-${VERSION}.tgz`);
  expect(readdirSync(folder.path)).toEqual([`proxywarden-${VERSION}.tgz`]);
  expect(await renderChart(EVERYTHING, file)).toEqual(await renderChart(EVERYTHING));
});

test("every example of the README renders", async () => {
  const examples = [...textOf(`${CHART}/README.md`).matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(
    ([, values]) => values!,
  );
  expect(examples).toHaveLength(3);
  for (const values of examples) expect(await schemaProblems(await renderChart(values))).toEqual([]);
});

test("every value of the schema has a default, and is described", () => {
  const missing = (path: string, schema: Schema, value: unknown): readonly string[] => {
    if (value === undefined) return [path];
    return Object.entries(schema.description === undefined ? (schema.properties ?? {}) : {}).flatMap(([key, each]) =>
      missing(`${path}.${key}`, each, (value as Record<string, unknown>)[key]),
    );
  };
  const schema = JSON.parse(textOf(`${CHART}/values.schema.json`)) as Schema;
  expect(missing("", schema, documentOf(`${CHART}/values.yaml`))).toEqual([".global"]); // Helm's own
});

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}
