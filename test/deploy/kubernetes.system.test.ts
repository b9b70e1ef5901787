import { readdirSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { VERSION } from "../../src/cli/context.ts";
import { parseDatabaseUrl } from "../../src/journal/postgres/url.ts";
import { fetchFrom, startTestServer } from "../web/http/test-server.ts";
import {
  type Container,
  type Deployment,
  kustomizationOf,
  type Labels,
  type NetworkPolicy,
  type Port,
  type Resource,
  type Rule,
  renderKustomization,
} from "./kustomize.ts";
import { documentOf, inRepository, parseCommand, parseConfigText, textOf } from "./manifest.ts";
import { schemaProblems } from "./manifest-schema.ts";

const SINGLE = "deploy/kubernetes";
const BASE = `${SINGLE}/base`;
const PAIR = `${SINGLE}/ha`;
const MONITORING = `${SINGLE}/monitoring`;

/** Returns the objects that `kubectl apply -k` creates from a folder. */
function deployed(folder: string, secretFile: string) {
  const resources = renderKustomization(folder);
  const all = <T extends Resource>(kind: string) =>
    resources.filter((resource): resource is T => resource.kind === kind);
  const deployment = all<Deployment>("Deployment")[0]!;
  const pod = deployment.spec.template.spec;
  const container = pod.containers[0]!;
  const { data } = all<Resource & { readonly data: Labels }>("ConfigMap")[0]!;
  const configText = data["proxywarden.yaml"]!;
  return {
    all,
    names: resources.map(({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`),
    deployment,
    pod,
    podLabels: deployment.spec.template.metadata.labels,
    container,
    portNames: container.ports.map(({ name }) => name),
    files: Object.keys(data),
    configText,
    loaded: parseConfigText(`${BASE}/proxywarden.yaml`, configText),
    secret: documentOf<Resource & { readonly stringData: Labels }>(secretFile),
    volume: (name: string) => pod.volumes.find((entry) => entry.name === name),
    mountOf: (name: string) => container.volumeMounts.find((volumeMount) => volumeMount.name === name),
  };
}

const single = deployed(SINGLE, `${BASE}/secret.example.yaml`);
const pair = deployed(PAIR, `${PAIR}/secret.example.yaml`);

test.each([
  [SINGLE, ["kustomization.yaml", "ha", "monitoring"]],
  [BASE, ["kustomization.yaml", "secret.example.yaml"]],
  [MONITORING, ["kustomization.yaml"]],
  [PAIR, ["kustomization.yaml", "secret.example.yaml"]],
])(
  "every file of %s is a resource, a patch, an option beside them, or a part of the configuration",
  (folder, beside) => {
    const { resources = [], patches = [], configMapGenerator = [] } = kustomizationOf(folder);
    const inFolder = resources.filter((name) => !name.startsWith("../"));
    const generated = configMapGenerator.flatMap(({ files }) => files);
    const known = [...inFolder, ...patches.map(({ path }) => path), ...generated, ...beside];
    expect(readdirSync(inRepository(folder)).sort()).toEqual(known.sort());
  },
);

test("every resource has a kind, a version and the name that others refer to", () => {
  expect(single.names).toEqual([
    "v1 Namespace proxywarden",
    "v1 PersistentVolumeClaim proxywarden",
    "apps/v1 Deployment proxywarden",
    "v1 Service proxywarden",
    "networking.k8s.io/v1 NetworkPolicy proxywarden",
    "v1 ConfigMap proxywarden",
  ]);
  expect(pair.names).toEqual([
    ...single.names.filter((name) => name !== "v1 PersistentVolumeClaim proxywarden"),
    "policy/v1 PodDisruptionBudget proxywarden",
    "networking.k8s.io/v1 NetworkPolicy proxywarden-postgres",
  ]);
});

test("every resource conforms to the schema of its kind", async () => {
  const resources = [SINGLE, PAIR, MONITORING].flatMap(renderKustomization);
  expect(await schemaProblems(resources)).toEqual([]);
});

describe("a single daemon", () => {
  test("is never duplicated", () => {
    expect(single.deployment.spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
  });

  test("has a state that outlives the pod, and can write nowhere else", () => {
    const [claim] = single.all<Resource & { readonly spec: object }>("PersistentVolumeClaim");
    expect(single.volume("state")!.persistentVolumeClaim?.claimName).toBe(claim!.metadata.name);
    expect(claim!.spec).toMatchObject({ accessModes: ["ReadWriteOnce"] });
    const writable = single.container.volumeMounts.filter(({ readOnly }) => readOnly !== true);
    expect(writable).toEqual([{ name: "state", mountPath: single.loaded.config.state.path }]);
  });
});

describe("a pair", () => {
  test("is replaced one by one, and runs on two hosts", () => {
    expect(pair.deployment.spec).toMatchObject({
      replicas: 2,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      template: {
        spec: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [ON_A_HOST] } } },
      },
    });
    const [budget] = pair.all<Resource & { readonly spec: object }>("PodDisruptionBudget");
    expect(budget!.spec).toMatchObject({ minAvailable: 1, selector: { matchLabels: pair.podLabels } });
  });

  const ON_A_HOST = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: pair.podLabels } };

  test("a new daemon has stood by for a lease before the next one is replaced", () => {
    const { minReadySeconds } = pair.deployment.spec as unknown as { readonly minReadySeconds: number };
    expect(minReadySeconds * 1_000).toBeGreaterThanOrEqual(pair.loaded.config.state.postgres!.lease);
  });

  test("writes to no disk", () => {
    expect(pair.volume("state")).toBeUndefined();
    expect(pair.container.volumeMounts.filter(({ readOnly }) => readOnly !== true)).toEqual([]);
  });

  test("differs from a single daemon only in its state", () => {
    const withoutState = (text: string) => text.replace(/^(?:# One of the daemons .*\n)?state: .*$/m, "");
    expect(withoutState(pair.configText)).toBe(withoutState(single.configText));
    const shown = ({ deployment: { spec } }: typeof pair) => {
      const { containers, volumes, ...others } = spec.template.spec;
      const [{ volumeMounts, ...container }] = containers as readonly [Container];
      const isKept = ({ name }: { readonly name: string }) => name !== "state";
      return {
        ...others,
        affinity: null,
        container,
        mounts: volumeMounts.filter(isKept),
        volumes: volumes.filter(isKept),
      };
    };
    expect(shown(pair)).toEqual(shown(single));
  });

  test("reaches its database, over a connection that verifies the certificate", () => {
    const url = new URL(pair.secret.stringData.postgres_url!);
    expect(url.searchParams.get("sslmode")).toBe("verify-full");
    // Only the cluster has the file of the authority.
    url.searchParams.set("sslrootcert", inRepository("deploy/compose/simulation_token"));
    expect(parseDatabaseUrl(url.href)).toMatchObject({ ok: true });
    const policy = pair
      .all<NetworkPolicy>("NetworkPolicy")
      .find(({ metadata }) => metadata.name.endsWith("-postgres"))!;
    expect(policy.spec.podSelector.matchLabels).toEqual(pair.podLabels);
    expect(policy.spec.policyTypes).toEqual(["Egress"]);
    const [rule] = policy.spec.egress;
    expect(rule!.ports).toEqual([{ protocol: "TCP", port: Number(url.port) }]);
    const namespace = rule!.to![0]!.namespaceSelector!.matchLabels["kubernetes.io/metadata.name"];
    expect(url.hostname.split(".")[1]).toBe(namespace);
  });
});

describe.each([
  ["a single daemon", single],
  ["a pair", pair],
])("%s", (_, made) => {
  const { config, warnings, policies } = made.loaded;

  test("the pod meets the strictest pod security standard, which its namespace enforces", () => {
    expect(made.all("Namespace")[0]!.metadata.labels).toMatchObject({
      "pod-security.kubernetes.io/enforce": "restricted",
    });
    const user = Number(/^USER (\d+):\1$/m.exec(textOf("Dockerfile"))?.[1]);
    expect(made.pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: user,
        runAsGroup: user,
        fsGroup: user,
        seccompProfile: { type: "RuntimeDefault" },
      },
    });
    expect(made.pod.containers).toHaveLength(1);
    expect(made.container).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
      resources: {
        requests: { cpu: expect.any(String), memory: expect.any(String) },
        limits: { memory: expect.any(String) },
      },
    });
  });

  test("it has more time to stop than it needs", () => {
    expect(made.pod.terminationGracePeriodSeconds).toBeGreaterThan(10);
  });

  test("the image is that of this version", () => {
    expect(made.container.image).toBe(`proxywarden:${VERSION}`);
    expect(kustomizationOf(BASE).images).toMatchObject([{ name: "proxywarden", newTag: VERSION }]);
  });

  test("its arguments are parsed by our own command line, and name a mounted file of the config map", async () => {
    const { name, options } = await parseCommand(made.container.args);
    expect(name).toBe("run");
    const config = String(options.config);
    expect(posix.dirname(config)).toBe(made.mountOf("config")!.mountPath);
    expect(made.volume("config")!.configMap?.name).toBe(made.all("ConfigMap")[0]!.metadata.name);
    expect(made.files).toContain(posix.basename(config));
    expect(made.loaded.config.policies.filter((file) => !made.files.includes(posix.basename(file)))).toEqual([]);
  });

  test("the shipped configuration is valid and acts on no node", () => {
    expect(warnings).toEqual([]);
    expect(config.safety.mode).toBe("dry_run");
    expect(policies.map(({ mode }) => mode)).toEqual(["dry_run"]);
  });

  test("the secrets that it reads are the keys of the example, where they are mounted, read-only", () => {
    const { metadata, stringData } = made.secret;
    expect(made.volume("secrets")!.secret?.secretName).toBe(metadata.name);
    expect(metadata.namespace).toBe(made.deployment.metadata.namespace);
    const { mountPath, readOnly } = made.mountOf("secrets")!;
    expect(readOnly).toBe(true);
    const named = `${made.configText} ${Object.values(stringData).join(" ")}`.match(/\/run\/secrets\/[\w./]+/g);
    expect(named).toEqual(Object.keys(stringData).map((key) => `${mountPath}/${key}`));
  });

  test("the container's port is the one that it listens on", () => {
    expect(made.container.ports).toEqual([{ name: "http", containerPort: config.web.listen.port }]);
    expect(config.web.listen.host).toBe("0.0.0.0");
  });

  test("the probes request routes that answer 200", async () => {
    const web = await startTestServer();
    const { startupProbe, livenessProbe, readinessProbe } = made.container;
    const probes = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet);
    expect(probes.map(({ path }) => path)).toEqual(["/-/healthy", "/-/healthy", "/-/ready"]);
    for (const { path, port } of probes) {
      expect(made.portNames).toContain(port);
      expect((await fetchFrom(web, path)).status).toBe(200);
    }
  });

  test("the service selects the pod", () => {
    const [service] = made.all<
      Resource & { readonly spec: { readonly selector: Labels; readonly ports: readonly { targetPort: Port }[] } }
    >("Service");
    expect(made.podLabels).toMatchObject(made.deployment.spec.selector.matchLabels);
    expect(made.podLabels).toMatchObject(service!.spec.selector);
    expect(service!.spec.ports.map(({ targetPort }) => targetPort)).toEqual(made.portNames);
  });

  test("the network policy selects the pod, and allows all connections that the configuration needs", () => {
    const { spec } = made.all<NetworkPolicy>("NetworkPolicy")[0]!;
    expect(made.podLabels).toMatchObject(spec.podSelector.matchLabels);
    expect(spec.policyTypes).toEqual(["Ingress", "Egress"]);
    const open = (rules: readonly Rule[]) => rules.flatMap(({ ports }) => ports.map(({ port }) => String(port)));
    expect(open(spec.ingress!)).toEqual(made.portNames);
    const urls = [config.service.base_url, config.prometheus?.url, config.alertmanager?.url].map(
      (url) => new URL(url!),
    );
    const needed = urls.map(({ port, protocol }) => port || (protocol === "https:" ? "443" : "80"));
    expect(open(spec.egress)).toEqual(expect.arrayContaining(["53", ...needed]));
  });
});

test("a changed configuration reaches the files of the pod without replacing it", () => {
  // Otherwise the map's name would change with its content, and an invalid configuration would leave no daemon at work.
  for (const folder of [BASE, PAIR]) expect(kustomizationOf(folder).generatorOptions?.disableNameSuffixHash).toBe(true);
});
