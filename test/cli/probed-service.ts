import type { FaultKind, Scenario, ServiceOptions } from "../../src/config/schema/scenario.ts";
import { defaultScenario, SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { startNetwork } from "../integration/simulated-network.ts";
import { runInProcess } from "./terminal.ts";

interface ProbedService {
  readonly options?: Partial<ServiceOptions>;
  readonly scenario?: Partial<Scenario>;
  /** Section `service` of the configuration. */
  readonly service?: object;
  readonly limits?: object;
  /** Further sections of the configuration. */
  readonly config?: object;
  readonly fault?: FaultKind;
  /** Paths of the requests that have the fault; absent: all. */
  readonly faultAt?: string;
}

/** With limits as high as these, a probe does not wait between its calls. */
const HIGH_LIMITS = {
  plan: { requests_per_minute: 60_000, concurrent_requests: 50, calls_per_month: 1_000_000 },
  node_management: { requests: 60_000, burst: 120_000 },
};

/** Starts a simulated service, and a configuration for it. */
export async function startService(probed: ProbedService) {
  const { options, scenario, service, limits = HIGH_LIMITS, fault, faultAt } = probed;
  const sizes = { nodes: 260, sessions: 300, ...scenario };
  const network = await startNetwork({
    speed: 1,
    scenario: { ...sizes, service: { ...defaultScenario.service, ...options } },
  });
  if (fault !== undefined) network.setFault(fault, faultAt);
  const folder = createTempFolder();
  const config = {
    service: { base_url: network.url, api_key: SIMULATION_KEY, page_limit: 100, ...service },
    state: { path: folder.pathOf("state") },
    limits,
    ...probed.config,
  };
  return { network, file: folder.write("proxywarden.yaml", JSON.stringify(config)) };
}

interface JsonFinding {
  readonly value: unknown;
  readonly certain: boolean;
  readonly problem: boolean;
  readonly text: string;
}

/** Runs `check --probe` and returns its findings. */
export async function probe(probed: ProbedService = {}) {
  const { network, file } = await startService(probed);
  const { code, out } = await runInProcess("check", "--config", file, "--probe", "--output", "json");
  const { findings, calls } = (
    JSON.parse(out) as {
      probe: { findings: Record<string, JsonFinding>; calls: { path: string; status: number | null }[] };
    }
  ).probe;
  return { code, findings, calls, network };
}
