import { styleText } from "node:util";
import { type App, startApp } from "../app.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { ok } from "../base/result.ts";
import { formatProblem } from "../config/problem.ts";
import type { AppParts } from "../foundation.ts";
import type { Clock } from "../model/ports.ts";
import type { Scenario } from "../model/scenario.ts";
import { createScaledClock } from "../simulator/clock.ts";
import { demoScenario, SIMULATION_KEY } from "../simulator/defaults.ts";
import { type Server, startServer } from "../simulator/server.ts";
import { createService } from "../simulator/service.ts";
import { createMemoryStore } from "../store/sqlite.ts";
import { createBell } from "../system/bell.ts";
import { createSystemClock } from "../system/clock.ts";
import { createLog } from "../system/log.ts";
import { judgeConfig } from "./config.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";
import { report } from "./report.ts";
import { createTelling } from "./telling.ts";

/** Options of `demo`. */
export interface DemoOptions {
  readonly nodes: number;
  readonly sessions: number;
  readonly seed: number;
  /** How much faster than real the demo's time runs. */
  readonly speed: number;
  readonly port: number;
  /** Ends by itself after so much of real time; absent: runs until it is stopped. */
  readonly for?: DurationMs;
}

/** Colours are for a terminal, and only where the environment (NO_COLOR) lets them. */
const COLOURS = { good: "green", bad: "red", change: "yellow", summary: null } as const;
/** Looked at so often, in real time, for something worth a line. */
const LOOK_MS: DurationMs = SECOND_MS;

/** `demo`: simulated service and daemon in one process, over real HTTP, telling what happens. */
export async function demo(options: DemoOptions, context: CommandContext): Promise<ExitCode> {
  const real = createSystemClock();
  const clock = options.speed === 1 ? real : createScaledClock(real, options.speed);
  const { nodes, sessions, seed } = options;
  // The enterprise plan has no month to pace by: a demo of minutes is no month.
  const scenario: Scenario = {
    ...demoScenario,
    nodes,
    sessions,
    seed,
    service: { ...demoScenario.service, plan: "enterprise" },
  };
  const service = createService(scenario, clock.now());
  const server = await startServer(service, clock, { port: 0 });
  const started = await startApp(demoParts(clock, demoConfig(server.url, options.port), context));
  if (!started.ok) {
    context.err.write(started.error.map((problem) => `proxywarden: ${problem}\n`).join(""));
    await server.close();
    return EXIT_BAD;
  }
  greet(options, started.value, server, context);
  await watchUntilStopped(started.value, clock, options, context);
  context.out.write(await report(started.value, service));
  await started.value.stop();
  await server.close();
  return EXIT_FINE;
}

const demoConfig = (serviceUrl: string, port: number): string => `
service: {base_url: "${serviceUrl}", api_key: ${SIMULATION_KEY}, usage_scale: ratio}
limits: {plan: enterprise}
collect:
  nodes: {every: 15s}
  details: {max_age: 10m}
  sessions: {every: 30s}
  stats: {every: 30s}
web: {listen: "127.0.0.1:${port}"}
log: {level: warn, format: pretty}
`;

function demoParts(clock: Clock, text: string, context: CommandContext): AppParts {
  return {
    clock,
    bell: createBell(),
    random: Math.random,
    log: createLog({ level: "warn", format: "pretty" }),
    version: context.version,
    readConfig() {
      const judged = judgeConfig("demo", text, {});
      return judged.ok ? ok(judged.value.config) : { ok: false, error: judged.error.map(formatProblem) };
    },
    readFile: readTextFile,
    openStore: () => ok(createMemoryStore()),
  };
}

function greet({ nodes, sessions, speed }: DemoOptions, app: App, server: Server, { out }: CommandContext): void {
  const pace = speed === 1 ? "in real time" : `at ${speed} times real time`;
  out.write(`proxywarden watches a simulated network of ${nodes} nodes and ${sessions} sessions, ${pace}

  start page   ${app.url()}/
  metrics      ${app.url()}/metrics
  status       ${app.url()}/api/v1/status
  the service  ${server.url}/v1/nodes   (Authorization: Bearer ${SIMULATION_KEY})

Ctrl-C ends it with a report. What happens:

`);
}

async function watchUntilStopped(app: App, clock: Clock, { for: forMs }: DemoOptions, { out, stop }: CommandContext) {
  const real = createSystemClock();
  const telling = createTelling(clock.monotonic());
  const endsAt = real.monotonic() + (forMs ?? Number.POSITIVE_INFINITY);
  while (!stop.aborted && real.monotonic() < endsAt) {
    await real.sleep(Math.min(LOOK_MS, endsAt - real.monotonic()), stop);
    for (const { text, tone } of telling.tell(app.scene())) {
      const colour = COLOURS[tone];
      out.write(`${out.isTTY && colour !== null ? styleText(colour, text) : text}\n`);
    }
  }
}
