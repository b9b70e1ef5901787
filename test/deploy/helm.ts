import { parseAllDocuments } from "yaml";
import { createTempFolder } from "../harness/temp-folder.ts";
import { type ProcessResult, startProcess } from "../integration/process.ts";
import type { Resource } from "./kustomize.ts";
import { inRepository } from "./manifest.ts";

/** The folder of the chart. */
export const CHART = "deploy/helm/proxywarden";

/** Runs Helm. Throws if it is missing. */
export async function runHelm(...args: readonly string[]): Promise<ProcessResult> {
  try {
    return await startProcess("helm", args).ended;
  } catch (error) {
    throw new Error(`helm can't be run (${(error as Error).message}); .ci/tools installs it`);
  }
}

const rendered = new Map<string, Promise<readonly Resource[]>>();

/**
 * The objects that `helm template` makes of the chart with a file of values, in the namespace `proxywarden`. Throws
 * with Helm's output if it fails. `chart`: path of a packaged chart. The same values are rendered once.
 */
export function renderChart(values: string, chart = inRepository(CHART)): Promise<readonly Resource[]> {
  const key = `${chart}\n${values}`;
  const resources = rendered.get(key) ?? renderValues(values, chart);
  rendered.set(key, resources);
  return resources;
}

async function renderValues(values: string, chart: string): Promise<readonly Resource[]> {
  const file = createTempFolder().write("values.yaml", values);
  const { code, out, err } = await runHelm(
    ...["template", "proxywarden", chart, "--namespace", "proxywarden", "--values", file],
  );
  if (code !== 0) throw new Error(err);
  return parseAllDocuments(out).map((document) => document.toJS() as Resource);
}
