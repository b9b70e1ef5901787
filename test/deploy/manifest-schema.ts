import { symlinkSync } from "node:fs";
import { createTempFolder } from "../harness/temp-folder.ts";
import { startProcess } from "../integration/process.ts";
import type { Resource } from "./kustomize.ts";
import { inRepository } from "./manifest.ts";

interface Model {
  validate(): void;
}
type Models = Readonly<Record<string, new (resource: Resource) => Model>>;

const COMPILER_OPTIONS = [
  "--ignoreConfig",
  "--noEmit",
  "--strict",
  "--skipLibCheck",
  "--module",
  "nodenext",
  "--target",
  "esnext",
];

/** The package with the schemas of an API version, those of Kubernetes or of the Prometheus Operator. */
const moduleOf = (apiVersion: string): string =>
  `${apiVersion.startsWith("monitoring.coreos.com/") ? "@kubernetes-models/prometheus-operator" : "kubernetes-models"}/${apiVersion}`;

/**
 * What is wrong with objects by the schemas of their kinds. The schemas' validators find missing keys and malformed
 * values, but accept unknown keys. The compiler finds these by the types of the same schemas.
 */
export async function schemaProblems(resources: readonly Resource[]): Promise<readonly string[]> {
  const found = await Promise.all(resources.map(problemsOf));
  return [...found.flat(), ...(await typeProblemsOf(resources))];
}

async function problemsOf(resource: Resource): Promise<readonly string[]> {
  const models = (await import(moduleOf(resource.apiVersion))) as Models;
  try {
    new models[resource.kind]!(resource).validate();
    return [];
  } catch (error) {
    return [`${resource.kind} ${resource.metadata.name}: ${(error as Error).message}`];
  }
}

async function typeProblemsOf(resources: readonly Resource[]): Promise<readonly string[]> {
  const folder = createTempFolder();
  symlinkSync(inRepository("node_modules"), folder.pathOf("node_modules"));
  folder.write("package.json", '{ "type": "module" }');
  const lines = resources.map(
    (resource, index) =>
      `export const resource${index}: import("${moduleOf(resource.apiVersion)}").I${resource.kind} = ${JSON.stringify(resource)};`,
  );
  const file = folder.write("manifests.ts", lines.join("\n"));
  const compiler = inRepository("node_modules/typescript/bin/tsc");
  const { out } = await startProcess(process.execPath, [compiler, ...COMPILER_OPTIONS, file]).ended;
  return out.split("\n").filter((line) => line !== "");
}
