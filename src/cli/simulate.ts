import { loadScenario } from "../config/schema/scenario.ts";
import { systemClock } from "../platform/clock.ts";
import { readTextFile } from "../platform/text-file.ts";
import { defaultScenario } from "../simulator/default-scenarios.ts";
import { startServer } from "../simulator/http/server.ts";
import { createService } from "../simulator/http/service.ts";
import { listenProblem } from "../web/http/listen-address.ts";
import { countNoun } from "../web/ui/page/format.ts";
import { type CommandContext, CommandFailure, orFail, untilAborted } from "./context.ts";

interface SimulateOptions {
  readonly scenario?: string;
  readonly nodes?: number;
  readonly sessions?: number;
  readonly seed?: number;
  readonly host: string;
  readonly port: number;
}

/** `simulate`: runs only the simulated service, for any client. */
export async function runSimulate(options: SimulateOptions, context: CommandContext): Promise<void> {
  const { scenario: file, host, port, ...overrides } = options;
  const { env } = context;
  const base =
    file === undefined ? defaultScenario : orFail(loadScenario({ file, text: orFail(readTextFile(file)), env }));
  const scenario = { ...base, ...overrides };
  const service = createService(scenario, systemClock.now());
  const server = await startServer(service, systemClock, { host, port }).catch((error: unknown) => {
    throw new CommandFailure(listenProblem(host, port, error, "choose another with --host or --port"));
  });
  const { nodes, sessions, keys } = scenario;
  context.out.write(
    `simulated service with ${countNoun(nodes, "node")} and ${countNoun(sessions, "session")}: ${server.url}/v1/nodes\n`,
  );
  for (const { key, scopes } of keys) context.out.write(`  Authorization: Bearer ${key}  (${scopes.join(", ")})\n`);
  await untilAborted(context.stop);
  await server.close();
}
