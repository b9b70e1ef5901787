import { parentPort, workerData } from "node:worker_threads";
import { readConfigFile } from "./config-loading.ts";
import type { ConfigThreadInput } from "./config-thread.ts";

const { file, env } = workerData as ConfigThreadInput;
parentPort?.postMessage(readConfigFile(file, env));
