import { readdirSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { VERSION } from "../../src/cli/context.ts";
import { fetchFrom, startTestServer } from "../web/http/test-server.ts";
import { documentOf, documentsOf, inRepository, parseCommand, parseRepositoryConfig, textOf } from "./manifest.ts";

const FOLDER = "deploy/kubernetes";
const inFolder = (name: string): string => `${FOLDER}/${name}`;

type Labels = Readonly<Record<string, string>>;
type Port = number | string;

interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Labels };
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: Port };
}

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string };
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

interface Deployment extends Resource {
  readonly spec: {
    readonly selector: { readonly matchLabels: Labels };
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly Container[];
        readonly volumes: readonly Volume[];
      };
    };
  };
}

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly generatorOptions: { readonly disableNameSuffixHash: boolean };
  readonly images: readonly { readonly name: string; readonly newTag: string }[];
}

interface WrittenConfig {
  readonly service: { readonly api_key_file: string };
  readonly web: { readonly admin_token_file: string };
}

const kustomization = documentOf<Kustomization>(inFolder("kustomization.yaml"));
const deployment = documentOf<Deployment>(inFolder("deployment.yaml"));
const pod = deployment.spec.template.spec;
const container = pod.containers[0]!;
const podLabels = deployment.spec.template.metadata.labels;
const { config, warnings, policies } = parseRepositoryConfig(inFolder("proxywarden.yaml"));
const written = documentOf<WrittenConfig>(inFolder("proxywarden.yaml"));
const portNames = container.ports.map(({ name }) => name);

const resource = <T>(name: string) => documentOf<Resource & T>(inFolder(name));

test("every file is a resource, an option beside them, or a part of the configuration", () => {
  const generated = kustomization.configMapGenerator.flatMap(({ files }) => files);
  const beside = ["kustomization.yaml", "secret.example.yaml", "servicemonitor.yaml"];
  expect(readdirSync(inRepository(FOLDER)).sort()).toEqual(
    [...kustomization.resources, ...generated, ...beside].sort(),
  );
});

test("every resource has a kind, a version and the name that others know it by", () => {
  const names = [...kustomization.resources, "secret.example.yaml", "servicemonitor.yaml"].flatMap((file) =>
    documentsOf<Resource>(inFolder(file)).map(
      ({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`,
    ),
  );
  expect(names).toEqual([
    "v1 Namespace proxywarden",
    "v1 PersistentVolumeClaim proxywarden",
    "apps/v1 Deployment proxywarden",
    "v1 Service proxywarden",
    "networking.k8s.io/v1 NetworkPolicy proxywarden",
    "v1 Secret proxywarden",
    "monitoring.coreos.com/v1 ServiceMonitor proxywarden",
  ]);
  expect(kustomization.namespace).toBe("proxywarden");
});

test("there is never more than one daemon", () => {
  expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
  expect(pod.containers).toHaveLength(1);
});

test("the pod meets the strictest pod security standard, which its namespace enforces", () => {
  expect(resource<object>("namespace.yaml").metadata.labels).toMatchObject({
    "pod-security.kubernetes.io/enforce": "restricted",
  });
  const user = Number(/^USER (\d+):\1$/m.exec(textOf("Dockerfile"))?.[1]);
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user,
      runAsGroup: user,
      fsGroup: user,
      seccompProfile: { type: "RuntimeDefault" },
    },
  });
  expect(container).toMatchObject({
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
    resources: {
      requests: { cpu: expect.any(String), memory: expect.any(String) },
      limits: { memory: expect.any(String) },
    },
  });
});

test("it has more time to end than it needs", () => {
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(10);
});

test("the image is that of this version", () => {
  expect(container.image).toBe(`proxywarden:${VERSION}`);
  expect(kustomization.images).toMatchObject([{ name: "proxywarden", newTag: VERSION }]);
});

test("its arguments are read by our own command line, and name a mounted file that the configuration map has", async () => {
  const { name, options } = await parseCommand(container.args);
  expect(name).toBe("run");
  const mount = mountOf("config");
  expect(posix.dirname(String(options.config))).toBe(mount.mountPath);
  const [map] = kustomization.configMapGenerator;
  expect(volume("config").configMap?.name).toBe(map!.name);
  // Without it the map's name would change with its content; a wrong one would leave no daemon at work.
  expect(kustomization.generatorOptions.disableNameSuffixHash).toBe(true);
  expect(map!.files).toContain(posix.basename(String(options.config)));
  expect(policies.map(({ file }) => posix.basename(file)).filter((file) => !map!.files.includes(file))).toEqual([]);
});

test("the shipped configuration is valid and acts on no node", () => {
  expect(warnings).toEqual([]);
  expect(config.safety.mode).toBe("dry_run");
  expect(policies.map(({ policy }) => policy.mode)).toEqual(["dry_run"]);
});

test("the secrets that it reads are the keys of the example, where they are mounted, read-only", () => {
  const secret = resource<{ readonly stringData: Labels }>("secret.example.yaml");
  expect(volume("secrets").secret?.secretName).toBe(secret.metadata.name);
  expect(secret.metadata.namespace).toBe(kustomization.namespace);
  const { mountPath, readOnly } = mountOf("secrets");
  expect(readOnly).toBe(true);
  expect(Object.keys(secret.stringData).map((key) => `${mountPath}/${key}`)).toEqual([
    written.service.api_key_file,
    written.web.admin_token_file,
  ]);
});

test("its state outlives the pod, and is all that it may write to", () => {
  const claim = resource<{ readonly spec: object }>("pvc.yaml");
  expect(volume("state").persistentVolumeClaim?.claimName).toBe(claim.metadata.name);
  expect(claim.spec).toMatchObject({ accessModes: ["ReadWriteOnce"] });
  const writable = container.volumeMounts.filter(({ readOnly }) => readOnly !== true);
  expect(writable).toEqual([{ name: "state", mountPath: config.state.path }]);
});

describe("the daemon is reachable:", () => {
  test("the container's port is the one that it listens on", () => {
    expect(container.ports).toEqual([{ name: "http", containerPort: config.web.listen.port }]);
    expect(config.web.listen.host).toBe("0.0.0.0");
  });

  test("the probes request routes that answer 200", async () => {
    const web = await startTestServer();
    const { startupProbe, livenessProbe, readinessProbe } = container;
    const probes = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet);
    expect(probes.map(({ path }) => path)).toEqual(["/-/healthy", "/-/healthy", "/-/ready"]);
    for (const { path, port } of probes) {
      expect(portNames).toContain(port);
      expect((await fetchFrom(web, path)).status).toBe(200);
    }
  });

  test("the service leads to the pod, and the monitor to the service", async () => {
    const service = resource<{
      readonly spec: {
        readonly selector: Labels;
        readonly ports: readonly { readonly name: string; targetPort: Port }[];
      };
    }>("service.yaml");
    expect(podLabels).toMatchObject(deployment.spec.selector.matchLabels);
    expect(podLabels).toMatchObject(service.spec.selector);
    expect(service.spec.ports.map(({ targetPort }) => targetPort)).toEqual(portNames);
    const monitor = resource<{
      readonly spec: {
        readonly selector: { readonly matchLabels: Labels };
        readonly endpoints: readonly { readonly port: string; readonly path: string }[];
      };
    }>("servicemonitor.yaml");
    expect(service.metadata.labels).toMatchObject(monitor.spec.selector.matchLabels);
    expect(monitor.spec.endpoints).toMatchObject([{ port: service.spec.ports[0]!.name, path: "/metrics" }]);
    expect((await fetchFrom(await startTestServer(), "/metrics")).status).toBe(200);
  });

  test("the network policy is about the pod, and lets all pass that the configuration needs", () => {
    const { spec } = resource<{
      readonly spec: {
        readonly podSelector: { readonly matchLabels: Labels };
        readonly policyTypes: readonly string[];
        readonly ingress: readonly Rule[];
        readonly egress: readonly Rule[];
      };
    }>("networkpolicy.yaml");
    expect(podLabels).toMatchObject(spec.podSelector.matchLabels);
    expect(spec.policyTypes).toEqual(["Ingress", "Egress"]);
    const open = (rules: readonly Rule[]) => rules.flatMap(({ ports }) => ports.map(({ port }) => String(port)));
    expect(open(spec.ingress)).toEqual(portNames);
    const urls = [config.service.base_url, config.prometheus?.url, config.alertmanager?.url].map(
      (url) => new URL(url!),
    );
    const needed = urls.map(({ port, protocol }) => port || (protocol === "https:" ? "443" : "80"));
    expect(open(spec.egress)).toEqual(expect.arrayContaining(["53", ...needed]));
  });
});

interface Rule {
  readonly ports: readonly { readonly port: Port }[];
}

const volume = (name: string): Volume => pod.volumes.find((each) => each.name === name)!;
const mountOf = (name: string) => container.volumeMounts.find((each) => each.name === name)!;
