import { fail, ok, type Result } from "../base/result.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import type { Environment } from "../config/environment.ts";
import { loadScenario } from "../config/schema/scenario.ts";
import type { Scenario } from "../model/scenario.ts";
import type { EpochMs } from "../model/time.ts";
import { systemClock } from "../platform/clock.ts";
import { readTextFile } from "../platform/text-file.ts";
import { defaultScenario } from "../simulator/default-scenarios.ts";
import { startServer } from "../simulator/http/server.ts";
import { createService, type SimulatedService } from "../simulator/http/service.ts";
import { listenProblem } from "../web/http/server.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith, untilAborted } from "./context.ts";
import { CLEAR_LINE } from "./output/progress.ts";

interface SimulateOptions {
  readonly scenario?: string;
  readonly nodes?: number;
  readonly sessions?: number;
  readonly seed?: number;
  readonly host: string;
  readonly port: number;
}

/** `simulate`: runs only the simulated service, for any client. */
export async function runSimulate(options: SimulateOptions, context: CommandContext): Promise<ExitCode> {
  const scenario = readScenario(options, context.env);
  if (!scenario.ok) return failWith(context, scenario.error);
  try {
    const service = createServiceWithStatus(scenario.value, systemClock.now(), context);
    const server = await startServer(service, systemClock, options);
    const { nodes, sessions, keys } = scenario.value;
    context.out.write(`simulated service with ${nodes} nodes and ${sessions} sessions: ${server.url}/v1/nodes\n`);
    for (const { key, scopes } of keys) context.out.write(`  Authorization: Bearer ${key}  (${scopes.join(", ")})\n`);
    await untilAborted(context.stop);
    await server.close();
    return EXIT_OK;
  } catch (error) {
    return failWith(context, listenProblem(options.host, options.port, error, "choose another with --port"));
  }
}

/** Number of nodes and sessions that are created within about two seconds. */
const QUICK_RECORDS_MAX = 200_000;

/** Creates the simulated service of a scenario. For a large one, a terminal shows a status line while it is created. */
export function createServiceWithStatus(
  scenario: Scenario,
  now: EpochMs,
  { err }: Pick<CommandContext, "err">,
): SimulatedService {
  const { nodes, sessions } = scenario;
  const isShown = err.isTTY === true && nodes + sessions > QUICK_RECORDS_MAX;
  if (isShown) err.write(`creating ${nodes} nodes and ${sessions} sessions`);
  const service = createService(scenario, now);
  if (isShown) err.write(CLEAR_LINE);
  return service;
}

function readScenario(
  { scenario: file, host: _host, port: _port, ...overrides }: SimulateOptions,
  env: Environment,
): Result<Scenario, readonly string[]> {
  if (file === undefined) return ok({ ...defaultScenario, ...overrides });
  const text = readTextFile(file);
  if (!text.ok) return fail([text.error]);
  const loaded = loadScenario({ file, text: text.value, env }, defaultScenario);
  return loaded.ok ? ok({ ...loaded.value, ...overrides }) : fail(loaded.error.map(formatProblem));
}
