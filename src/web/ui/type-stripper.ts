import { stripTypeScriptTypes } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

// A thread of its own: the parser takes a while to start, and nothing that the daemon does should wait for it. Blanks
// stand where types stood, so that lines and columns in the browser are those of the source.
const sources = workerData as readonly string[];
parentPort?.postMessage(sources.map((source) => stripTypeScriptTypes(source, { mode: "strip" })));
