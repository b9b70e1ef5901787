import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Fault, Scenario } from "../../../src/config/schema/scenario.ts";
import { defaultScenario, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";

/** Size of an endurance run. */
export interface EnduranceSize {
  readonly days: number;
  readonly nodes: number;
  readonly seed: number;
}

/** The whole fleet is replaced every 18 days, five times in a run of 90. */
const TURNOVER_DAYS = 18;

/** A fault that gives each label thousands of values for an hour. The daemon must release them afterwards. */
const manyLabels = (day: number): Fault => ({
  afterMs: day * DAY_MS,
  forMs: HOUR_MS,
  fault: { kind: "many_labels", values: 5_000 },
});

/** Returns a scenario in which nodes continually join, leave and fail, and some do not return from a reboot. */
export function enduranceScenario({ days, nodes, seed }: EnduranceSize): Scenario {
  const everyMs: DurationMs = (TURNOVER_DAYS * DAY_MS) / nodes;
  const { service, rates } = defaultScenario;
  return {
    ...defaultScenario,
    seed,
    nodes,
    sessions: nodes / 2,
    service: { ...service, plan: "enterprise", listEndedSessions: true },
    rates: { ...rates, rebootMs: 2 * MINUTE_MS },
    churn: {
      joinEveryMs: everyMs,
      leaveEveryMs: everyMs,
      vanishAfterReboot: 0.05,
      failAfterReboot: 0.05,
      vanishForMs: 2 * DAY_MS,
      reuseIds: false,
    },
    faults: Array.from({ length: Math.floor(days / 10) }, (_, index) => manyLabels(10 * index + 5)),
  };
}

/** Long intervals keep 90 simulated days affordable; each node is still evaluated 48 times a day. */
const CONFIG = `
service: { base_url: "https://proxy.internal", api_key: ${SIMULATION_KEY}, usage_scale: ratio }
limits: { plan: enterprise }
collect:
  nodes: { every: 30m }
  details: { max_age: 3d }
  sessions: { every: 1h }
  stats: { every: 1h }
log: { level: error }
policies: [policies.yaml]
safety:
  mode: enforce
  max_disrupted_per: { region: 5 }
  max_in_flight: 5
`;

const POLICIES = `
policies:
  - name: reboot-offline
    mode: enforce
    when: node.status == "offline"
    for: 1h
    clear_for: 1h
    steps:
      - { action: reboot, verify: { within: 2h } }
      - { action: reboot, force: true, verify: { within: 2h } }
      - { action: quarantine, duration: 6h, verify: { within: 2h } }
    retry: { episodes: 2, every: 6h, forget_after: 24h }
  - name: worn-out
    when: node.status == "online" && (node.memory_usage > 0.95 || node.disk_usage > 0.97 || node.cpu_usage > 0.97)
    for: 0s
    steps: [{ action: disconnect, verify: { within: 2h } }]
  - name: failing-sessions
    when: sessions.failed_ratio > 0.5 && sessions.total >= 2
    for: 1h
    steps: [{ action: disconnect, verify: { within: 2h } }]
`;

/** Writes a configuration whose journal is in the same folder. Returns the path of the configuration file. */
export function writeEnduranceConfig(folder: string): string {
  const file = join(folder, "proxywarden.yaml");
  writeFileSync(file, `${CONFIG}state: { path: ${JSON.stringify(join(folder, "state"))} }\n`);
  writeFileSync(join(folder, "policies.yaml"), POLICIES);
  return file;
}
