import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { ok } from "../base/result.ts";
import { type Daemon, startDaemon } from "../daemon/daemon.ts";
import { createMemoryStateStore } from "../journal/sqlite/store.ts";
import type { Clock } from "../model/ports.ts";
import { systemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import { createScaledClock } from "../simulator/clock.ts";
import { demoScenario, SIMULATION_KEY } from "../simulator/default-scenarios.ts";
import { type SimulatorServer, startServer } from "../simulator/http/server.ts";
import { createService, rateLimitedCount, replyCounts, type SimulatedService } from "../simulator/http/service.ts";
import { statusView } from "../web/api/status-views.ts";
import { countNoun, formatDuration } from "../web/ui/page/format.ts";
import { readConfigFile } from "./config/config-loading.ts";
import { type CommandContext, CommandFailure, orFail, PROGRAM } from "./context.ts";
import { createConsoleReporter } from "./output/console-reporter.ts";
import { createPaint } from "./output/text.ts";

interface DemoOptions {
  readonly nodes: number;
  readonly sessions: number;
  readonly seed: number;
  /** Simulation speed, as a multiple of real time. */
  readonly speed: number;
  readonly port: number;
  /** Real time after which the demo stops. Absent means that it runs until the process is asked to stop. */
  readonly for?: DurationMs;
}

/** Interval, in real time, at which the demo looks for events to print. */
const POLL_INTERVAL_MS: DurationMs = SECOND_MS;

/** `demo`: runs a simulated service and the daemon in one process, over real HTTP, and prints what happens. */
export async function runDemo(options: DemoOptions, context: CommandContext): Promise<void> {
  const clock = options.speed === 1 ? systemClock : createScaledClock(systemClock, options.speed);
  const { nodes, sessions, seed } = options;
  // A monthly limit would slow down polling, and the enterprise plan has none.
  const plan = { ...demoScenario.service, plan: "enterprise" } as const;
  const scenario = { ...demoScenario, nodes, sessions, seed, service: plan };
  const service = createService(scenario, clock.now());
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
  const deps = {
    clock,
    log: createLog({ level: "error", format: "pretty" }),
    version: context.version,
    random: Math.random,
    readConfig: () => readConfigFile(CONFIG_FILE, environment),
    openStore: () => ok(createMemoryStateStore()),
  };
  try {
    const started = await startDaemon(orFail(deps.readConfig()), deps);
    // The configuration of the demo takes its port from this option.
    if (!started.ok)
      throw new CommandFailure([started.error].flat().map((text) => text.replace(/^web\.listen:/, "--port:")));
    const daemon = started.value;
    printIntro(options, daemon, server, tokenFile, context);
    await reportUntilStopped(daemon, clock, options, context);
    context.out.write(await demoReport(daemon, service));
    await daemon.stop();
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The demo uses the shipped configuration, so that users can read it. */
const CONFIG_FILE = fileURLToPath(new URL("../../config/demo/proxywarden.yaml", import.meta.url));

function printIntro(
  { nodes, sessions, speed }: DemoOptions,
  daemon: Daemon,
  server: SimulatorServer,
  tokenFile: string,
  { out }: CommandContext,
): void {
  const pace = speed === 1 ? "in real time" : `at ${speed} times real time`;
  out.write(`proxywarden monitors a simulated network of ${countNoun(nodes, "node")} and ${countNoun(sessions, "session")}, ${pace}, and remediates its nodes

  status page  ${daemon.url()}/
  metrics      ${daemon.url()}/metrics
  status       ${daemon.url()}/api/v1/status
  decisions    ${daemon.url()}/api/v1/decisions
  command      ${PROGRAM} pause --url ${daemon.url()} --token-file ${tokenFile}
  service API  ${server.url}/v1/nodes   (Authorization: Bearer ${SIMULATION_KEY})

Press Ctrl-C to stop and print a report. Events:

`);
}

async function reportUntilStopped(daemon: Daemon, clock: Clock, { for: forMs }: DemoOptions, context: CommandContext) {
  const { out, stop } = context;
  const paint = createPaint(out, context.env);
  const reporter = createConsoleReporter(clock.monotonic());
  const endsAt = systemClock.monotonic() + (forMs ?? Number.POSITIVE_INFINITY);
  while (!stop.aborted && systemClock.monotonic() < endsAt) {
    await systemClock.sleep(Math.min(POLL_INTERVAL_MS, endsAt - systemClock.monotonic()), stop);
    for (const { text, tone } of reporter.report(daemon.statusSnapshot(), daemon.eventLog)) {
      out.write(`${tone === null ? text : paint(tone, text)}\n`);
    }
  }
}

/** Returns the report at the end of a demo: API calls, actions and age of the data. */
async function demoReport(daemon: Daemon, service: SimulatedService): Promise<string> {
  const countLine = (count: number, what: string) => `  ${String(count).padStart(6)}  ${what}`;
  const calls = [
    ...replyCounts(service).map(({ endpoint, status, count }) => countLine(count, `${endpoint}  ${status}`)),
    countLine(rateLimitedCount(service), "answered 429"),
  ];
  const actions = await actionCounts(daemon.url());
  const { collectors } = statusView(daemon.statusSnapshot());
  const ages = Object.entries(collectors).map(([collector, { age_seconds: age }]) => {
    const shown = age === null ? "no data yet" : `${formatDuration(age.median)}  ${formatDuration(age.max)}`;
    return `  ${collector.padEnd(9)} ${shown}`;
  });
  return `
calls, by endpoint and response status
${calls.join("\n")}

actions, by policy, kind and outcome
${actions.length === 0 ? "  none" : actions.join("\n")}

age of the data, median and maximum
${ages.join("\n")}
`;
}

/** Returns the counters of actions in `/metrics` that are not zero, a line each. */
async function actionCounts(url: string): Promise<string[]> {
  const page = await (await fetch(`${url}/metrics`)).text();
  const samples = /^proxywarden_actions_total\{policy="(.*)",action="(.*)",outcome="(.*)"\} ([1-9]\d*)$/gm;
  return [...page.matchAll(samples)].map(
    ([, policy, action, outcome, count]) => `  ${count!.padStart(6)}  ${policy}  ${action}  ${outcome}`,
  );
}
