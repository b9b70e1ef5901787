import { parentPort, workerData } from "node:worker_threads";
import { ok } from "../../base/result.ts";
import { readConfigFile } from "./config-loading.ts";
import type { ConfigAnswer, ConfigQuestion } from "./config-thread.ts";

const { file, env } = workerData as ConfigQuestion;
const read = readConfigFile(file, env);
const answer: ConfigAnswer = read.ok ? ok({ ...read.value, webFile: sent(read.value.webFile) }) : read;
parentPort?.postMessage(answer);

function sent(webFile: (typeof read & { readonly ok: true })["value"]["webFile"]) {
  return webFile === null ? null : { file: webFile.file, config: webFile.config };
}
