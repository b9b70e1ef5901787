import { statSync } from "node:fs";
import { posix } from "node:path";
import { documentOf, documentsOf, inRepository, textOf } from "./manifest.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type JsonObject = { readonly [key: string]: Json };

/** A Kubernetes object. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Labels;
  };
}

/** Labels of an object, or those that a selector requires. */
export type Labels = Readonly<Record<string, string>>;
/** The number or the name of a port. */
export type Port = number | string;

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: Port };
}

/** A container of a pod. */
export interface Container {
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

/** A deployment. */
export interface Deployment extends Resource {
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

/** Connections that a network policy allows. */
export interface Rule {
  readonly to?: readonly { readonly namespaceSelector?: { readonly matchLabels: Labels } }[];
  readonly ports: readonly { readonly port: Port }[];
}

/** A network policy. */
export interface NetworkPolicy extends Resource {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Labels };
    readonly policyTypes: readonly string[];
    readonly ingress?: readonly Rule[];
    readonly egress: readonly Rule[];
  };
}

/** The parts of a kustomization that the repository uses. */
export interface Kustomization {
  readonly namespace?: string;
  readonly resources?: readonly string[];
  readonly patches?: readonly { readonly path: string }[];
  readonly configMapGenerator?: readonly {
    readonly name: string;
    readonly behavior?: "merge";
    readonly files: readonly string[];
  }[];
  readonly generatorOptions?: { readonly disableNameSuffixHash: boolean; readonly labels?: Labels };
  readonly images?: readonly { readonly name: string; readonly newTag: string }[];
}

const KEYS: readonly string[] = [
  "apiVersion",
  "kind",
  "namespace",
  "resources",
  "patches",
  "configMapGenerator",
  "generatorOptions",
  "images",
];

/** The keys by which Kubernetes joins the entries of a list; it replaces other lists. */
const MERGE_KEYS: Readonly<Record<string, string>> = { containers: "name", volumes: "name", volumeMounts: "mountPath" };

/** The kustomization of a folder. Throws if it has a key that {@link renderKustomization} does not know. */
export function kustomizationOf(folder: string): Kustomization {
  const kustomization = documentOf<Kustomization>(posix.join(folder, "kustomization.yaml"));
  const unknown = Object.keys(kustomization).filter((key) => !KEYS.includes(key));
  if (unknown.length > 0) throw new Error(`${folder}: unknown keys: ${unknown.join(", ")}`);
  return kustomization;
}

/** The objects that `kubectl kustomize` makes of a folder of the repository, except for the names of images. */
export function renderKustomization(folder: string): readonly Resource[] {
  const {
    namespace,
    resources = [],
    patches = [],
    configMapGenerator = [],
    generatorOptions,
  } = kustomizationOf(folder);
  let rendered = resources.flatMap((name) => {
    const path = posix.join(folder, name);
    return statSync(inRepository(path)).isDirectory() ? renderKustomization(path) : documentsOf<Resource>(path);
  });
  for (const { name, behavior, files } of configMapGenerator) {
    const data = Object.fromEntries(files.map((file) => [posix.basename(file), textOf(posix.join(folder, file))]));
    const { labels } = generatorOptions ?? {};
    const metadata = { name, ...(labels !== undefined && { labels }) };
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
    rendered = behavior === "merge" ? patchOne(rendered, map) : [...rendered, map];
  }
  for (const { path } of patches) {
    rendered = patchOne(rendered, documentOf<Resource>(posix.join(folder, path)));
  }
  if (namespace === undefined) return rendered;
  return rendered.map((resource) =>
    resource.kind === "Namespace" ? resource : { ...resource, metadata: { ...resource.metadata, namespace } },
  );
}

/** Applies a strategic merge patch to the object that it names. */
function patchOne(resources: readonly Resource[], patch: Resource): Resource[] {
  const isTarget = ({ kind, metadata }: Resource) => kind === patch.kind && metadata.name === patch.metadata.name;
  if (resources.filter(isTarget).length !== 1) throw new Error(`no single ${patch.kind} ${patch.metadata.name}`);
  return resources.flatMap((resource) => (isTarget(resource) ? patched(resource, patch) : [resource]));
}

/** Returns the patched object, or nothing if the patch deletes it. */
const patched = <T extends object>(target: T, patch: object): T[] =>
  "$patch" in patch ? [] : [merged(target as JsonObject, patch as JsonObject) as T];

function merged(target: JsonObject, patch: JsonObject): JsonObject {
  const changed = Object.entries(patch).map(([key, value]) => [key, mergedValue(key, target[key], value)] as const);
  return { ...target, ...Object.fromEntries(changed) };
}

function mergedValue(key: string, target: Json | undefined, patch: Json): Json {
  const mergeKey = MERGE_KEYS[key];
  if (Array.isArray(target) && Array.isArray(patch) && mergeKey !== undefined) {
    return mergedList(mergeKey, target as readonly JsonObject[], patch as readonly JsonObject[]);
  }
  return isObject(target) && isObject(patch) ? merged(target, patch) : patch;
}

function mergedList(key: string, target: readonly JsonObject[], patches: readonly JsonObject[]): JsonObject[] {
  const added = patches.filter((patch) => target.every((entry) => entry[key] !== patch[key]));
  const kept = target.flatMap((entry) => {
    const patch = patches.find((candidate) => candidate[key] === entry[key]);
    return patch === undefined ? [entry] : patched(entry, patch);
  });
  return [...added, ...kept];
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
