import { parentPort, workerData } from "node:worker_threads";
import { ok } from "../../base/result.ts";
import { readConfigFile } from "./config-loading.ts";
import type { ConfigThreadInput, ConfigThreadOutput } from "./config-thread.ts";

const { file, env } = workerData as ConfigThreadInput;
const read = readConfigFile(file, env);
const answer: ConfigThreadOutput = read.ok
  ? ok({ ...read.value, webFile: withoutFunctions(read.value.webFile) })
  : read;
parentPort?.postMessage(answer);

function withoutFunctions(webFile: (typeof read & { readonly ok: true })["value"]["webFile"]) {
  return webFile === null ? null : { file: webFile.file, config: webFile.config };
}
