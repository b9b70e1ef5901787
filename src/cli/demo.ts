import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type App, startApp } from "../daemon/daemon.ts";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { ok } from "../base/result.ts";
import type { AppParts } from "../daemon/runtime.ts";
import type { Clock } from "../model/ports.ts";
import type { Scenario } from "../model/scenario.ts";
import { createScaledClock } from "../simulator/clock.ts";
import { demoScenario, SIMULATION_KEY } from "../simulator/default-scenarios.ts";
import { type Server, startServer } from "../simulator/http/server.ts";
import { createMemoryStore } from "../journal/sqlite.ts";
import { createBell } from "../platform/cron.ts";
import { createSystemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import { paintFor } from "./output/colour.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";
import { report } from "./output/demo-report.ts";
import { makeService } from "./simulate.ts";
import { createTelling } from "./output/console-reporter.ts";

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

const TONES = { good: "good", bad: "bad", change: "warning", summary: null } as const;
/** Interval, in real time, at which the demo looks for events to print. */
const LOOK_MS: DurationMs = SECOND_MS;

/** `demo`: simulated service and daemon in one process, over real HTTP, printing what happens. */
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
  const service = makeService(scenario, clock.now(), context);
  const server = await startServer(service, clock, { port: 0 });
  const folder = mkdtempSync(join(tmpdir(), "proxywarden-demo-"));
  const tokenFile = join(folder, "admin_token");
  writeFileSync(tokenFile, `${randomBytes(16).toString("hex")}\n`, { mode: 0o600 });
  const environment = {
    DEMO_SERVICE: server.url,
    DEMO_KEY: SIMULATION_KEY,
    DEMO_PORT: String(options.port),
    DEMO_ADMIN_TOKEN_FILE: tokenFile,
  };
  const started = await startApp(demoParts(clock, environment, context));
  if (!started.ok) {
    context.err.write(started.error.map((problem) => `proxywarden: ${problem}\n`).join(""));
    await server.close();
    rmSync(folder, { recursive: true });
    return EXIT_BAD;
  }
  greet(options, started.value, server, tokenFile, context);
  await watchUntilStopped(started.value, clock, options, context);
  context.out.write(await report(started.value, service));
  await started.value.stop();
  await server.close();
  rmSync(folder, { recursive: true });
  return EXIT_FINE;
}

/** The demo uses the files that are shipped, so that users can read them. */
const CONFIG_FILE = fileURLToPath(new URL("../../config/demo/proxywarden.yaml", import.meta.url));

function demoParts(clock: Clock, environment: Readonly<Record<string, string>>, context: CommandContext): AppParts {
  return {
    clock,
    bell: createBell(),
    random: Math.random,
    log: createLog({ level: "error", format: "pretty" }),
    version: context.version,
    readConfig: () => readConfigFile(CONFIG_FILE, environment),
    readFile: readTextFile,
    openStore: () => ok(createMemoryStore()),
    createMemoryStore,
  };
}

function greet(
  { nodes, sessions, speed }: DemoOptions,
  app: App,
  server: Server,
  tokenFile: string,
  { out }: CommandContext,
): void {
  const pace = speed === 1 ? "in real time" : `at ${speed} times real time`;
  out.write(`proxywarden watches a simulated network of ${nodes} nodes and ${sessions} sessions, ${pace}, and heals it

  status page  ${app.url()}/
  metrics      ${app.url()}/metrics
  status       ${app.url()}/api/v1/status
  decisions    ${app.url()}/api/v1/decisions
  orders       proxywarden pause --url ${app.url()} --token-file ${tokenFile}
  the service  ${server.url}/v1/nodes   (Authorization: Bearer ${SIMULATION_KEY})

Ctrl-C ends it with a report. What happens:

`);
}

async function watchUntilStopped(app: App, clock: Clock, { for: forMs }: DemoOptions, context: CommandContext) {
  const { out, stop } = context;
  const paint = paintFor(out, context.env);
  const real = createSystemClock();
  const telling = createTelling(clock.monotonic());
  const endsAt = real.monotonic() + (forMs ?? Number.POSITIVE_INFINITY);
  while (!stop.aborted && real.monotonic() < endsAt) {
    await real.sleep(Math.min(LOOK_MS, endsAt - real.monotonic()), stop);
    for (const { text, tone } of telling.tell(app.scene(), app.warden())) {
      const colour = TONES[tone];
      out.write(`${colour === null ? text : paint(colour, text)}\n`);
    }
  }
}
