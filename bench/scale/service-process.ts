import { systemClock } from "../../src/platform/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { startServer } from "../../src/simulator/http/server.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { CALLS_PER_MINUTE } from "./daemon-run.ts";

// Serves a simulated network of the size in the arguments, and sends its URL to the parent process.
const [nodes = 0, sessions = 0] = process.argv.slice(2).map(Number);
const scenario = {
  ...defaultScenario,
  nodes,
  sessions,
  service: { ...defaultScenario.service, plan: "enterprise" as const },
};
const limit = { limit: CALLS_PER_MINUTE, burst: 2 * CALLS_PER_MINUTE, windowMs: 60_000 };
const categories = { node_management: limit, session_monitoring: limit };
const server = await startServer(createService(scenario, systemClock.now(), { categories }), systemClock, { port: 0 });
process.on("disconnect", () => process.exit());
process.send?.(server.url);
