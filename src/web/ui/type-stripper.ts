import { stripTypeScriptTypes } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

// This runs in a worker thread, because the parser takes a while to start.
const sources = workerData as readonly string[];
parentPort?.postMessage(sources.map((source) => stripTypeScriptTypes(source, { mode: "strip" })));
