import { globSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { DAEMON_FAMILIES } from "../../src/metrics/families/daemon-families.ts";
import type { DaemonFamily } from "../../src/metrics/families/family.ts";
import { NETWORK_FAMILIES } from "../../src/metrics/families/network-families.ts";
import { type Deployment, type Labels, type Resource, renderKustomization } from "./kustomize.ts";
import { inRepository, textOf } from "./manifest.ts";

/** Labels that the Prometheus Operator sets on every series of a PodMonitor. */
const TARGET_LABELS = ["job", "instance", "namespace", "pod", "container", "endpoint"];
/** `kubectl apply` stores the object in an annotation, whose size Kubernetes limits. */
const ANNOTATION_MAX_BYTES = 256 * 1_024;

interface PodMonitor extends Resource {
  readonly spec: {
    readonly jobLabel: string;
    readonly selector: { readonly matchLabels: Labels };
    readonly podMetricsEndpoints: readonly {
      readonly port: string;
      readonly path: string;
      readonly relabelings: readonly { readonly action: string; readonly regex: string }[];
    }[];
  };
}

const resources = renderKustomization("deploy/kubernetes/monitoring");
const ofKind = <T extends Resource>(kind: string) =>
  resources.filter((resource): resource is T => resource.kind === kind);
const [monitor] = ofKind<PodMonitor>("PodMonitor");
const [endpoint, ...otherEndpoints] = monitor!.spec.podMetricsEndpoints;

test("everything is in the namespace of the daemon", () => {
  expect(new Set(resources.map(({ metadata }) => metadata.namespace))).toEqual(new Set(["proxywarden"]));
});

test.each(["deploy/kubernetes", "deploy/kubernetes/ha"])(
  "the pods of %s are scraped, as the job of the alerts",
  (folder) => {
    const deployment = renderKustomization(folder).find(
      (resource): resource is Deployment => resource.kind === "Deployment",
    )!;
    const { metadata, spec } = deployment.spec.template;
    expect(metadata.labels).toMatchObject(monitor!.spec.selector.matchLabels);
    expect(spec.containers[0]!.ports.map(({ name }) => name)).toContain(endpoint!.port);
    expect([endpoint!.path, otherEndpoints]).toEqual(["/metrics", []]);
    const job = metadata.labels[monitor!.spec.jobLabel];
    expect(textOf("config/prometheus/rules/daemon.yml")).toContain(`up{job="${job}"}`);
  },
);

test("no label of a metric is renamed because the operator sets it on the target", () => {
  const daemonFamilies: readonly DaemonFamily[] = Object.values(DAEMON_FAMILIES);
  const labels = [
    ...daemonFamilies.flatMap((family) => Object.keys(family.labels)),
    ...NETWORK_FAMILIES.flatMap((family) => family.labels),
  ];
  const dropped = endpoint!.relabelings.map(({ action, regex }) => (action === "labeldrop" ? regex : ""));
  expect(TARGET_LABELS.filter((label) => labels.includes(label))).toEqual(dropped);
});

test("all rules are evaluated", () => {
  const groups = globSync("config/prometheus/rules/*.yml", { cwd: inRepository(".") })
    .toSorted()
    .flatMap((path) => (parse(textOf(path)) as { groups: readonly object[] }).groups);
  expect(ofKind<Resource & { readonly spec: object }>("PrometheusRule").map(({ spec }) => spec)).toEqual([{ groups }]);
});

test("every dashboard has the label of Grafana's sidecar, and is small enough for kubectl apply", () => {
  const maps = ofKind<Resource & { readonly data: Labels }>("ConfigMap");
  const files = globSync("grafana/dashboards/*.json", { cwd: inRepository(".") }).map((path) => basename(path));
  expect(maps.flatMap(({ data }) => Object.keys(data))).toEqual(files.toSorted());
  for (const map of maps) {
    expect(map.metadata.labels).toEqual({ grafana_dashboard: "1" });
    expect(Buffer.byteLength(JSON.stringify(map))).toBeLessThan(ANNOTATION_MAX_BYTES);
  }
});
