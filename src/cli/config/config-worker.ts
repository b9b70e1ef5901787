import { parentPort, workerData } from "node:worker_threads";
import { ok } from "../../base/result.ts";
import { readConfigFile } from "./config-loading.ts";
import type { ConfigThreadInput, ConfigThreadOutput } from "./config-thread.ts";

const { file, env } = workerData as ConfigThreadInput;
const read = readConfigFile(file, env);
const webFile = read.ok && read.value.webFile;
const output: ConfigThreadOutput = read.ok
  ? ok({ ...read.value, webFile: webFile ? { file: webFile.file, config: webFile.config } : null })
  : read;
parentPort?.postMessage(output);
