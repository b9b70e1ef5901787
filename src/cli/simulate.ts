import { fail, ok, type Result } from "../base/result.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import { loadScenario, type Scenario } from "../config/schema/scenario.ts";
import { systemClock } from "../platform/clock.ts";
import { readTextFile } from "../platform/text-file.ts";
import { defaultScenario } from "../simulator/default-scenarios.ts";
import { startServer } from "../simulator/http/server.ts";
import { createService } from "../simulator/http/service.ts";
import { listenProblem } from "../web/http/server.ts";
import { countNoun } from "../web/ui/page/format.ts";
import { type CommandContext, EXIT_OK, type ExitCode, failWith, untilAborted } from "./context.ts";

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
    const service = createService(scenario.value, systemClock.now());
    const server = await startServer(service, systemClock, options);
    const { nodes, sessions, keys } = scenario.value;
    context.out.write(
      `simulated service with ${countNoun(nodes, "node")} and ${countNoun(sessions, "session")}: ${server.url}/v1/nodes\n`,
    );
    for (const { key, scopes } of keys) context.out.write(`  Authorization: Bearer ${key}  (${scopes.join(", ")})\n`);
    await untilAborted(context.stop);
    await server.close();
    return EXIT_OK;
  } catch (error) {
    return failWith(context, listenProblem(options.host, options.port, error, "choose another with --host or --port"));
  }
}

function readScenario(
  { scenario: file, host: _host, port: _port, ...overrides }: SimulateOptions,
  env: NodeJS.ProcessEnv,
): Result<Scenario, readonly string[]> {
  if (file === undefined) return ok({ ...defaultScenario, ...overrides });
  const text = readTextFile(file);
  if (!text.ok) return fail([text.error]);
  const loaded = loadScenario({ file, text: text.value, env });
  return loaded.ok ? ok({ ...loaded.value, ...overrides }) : fail(loaded.error.map(formatProblem));
}
