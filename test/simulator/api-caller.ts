import type { Scenario, ServiceOptions } from "../../src/config/schema/scenario.ts";
import { defaultScenario, defaultServiceOptions, SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import type { Reply } from "../../src/simulator/http/reply.ts";
import { createService, handleRequest, type SimulatedService } from "../../src/simulator/http/service.ts";

/** A Wednesday, in the middle of an hour and of a month. */
export const START = Date.UTC(2026, 3, 15, 10, 20, 30);

/** Rates without failures and maintenance. */
export const noFailureRates: Scenario["rates"] = {
  ...defaultScenario.rates,
  faultEveryMs: Number.POSITIVE_INFINITY,
  maintenanceEveryMs: Number.POSITIVE_INFINITY,
};

/** Returns a scenario of a small network without failures and plan limits, with some changes. */
export function scenarioWith(change: Partial<Scenario> = {}, options: Partial<ServiceOptions> = {}): Scenario {
  const service = { ...defaultServiceOptions, plan: "enterprise" as const, ...options };
  return { ...defaultScenario, nodes: 40, sessions: 400, rates: noFailureRates, service, ...change };
}

/** A client of one service with a settable time. */
export interface TestClient {
  readonly service: SimulatedService;
  now: number;
  get(path: string, headers?: Record<string, string>): Reply;
  post(path: string, body?: unknown): Reply;
}

/** Creates a service and a client whose key has all scopes. */
export function createTestClient(scenario: Scenario): TestClient {
  const service = createService(scenario, START);
  const authorization = `Bearer ${SIMULATION_KEY}`;
  const client: TestClient = {
    service,
    now: START,
    get: (path, headers = { authorization }) => handleRequest(service, { method: "GET", path, headers }, client.now),
    post: (path, body) => {
      const request = { method: "POST", path, headers: { authorization } };
      return handleRequest(
        service,
        body === undefined ? request : { ...request, body: JSON.stringify(body) },
        client.now,
      );
    },
  };
  return client;
}

/** Parses the body of a reply. */
export const json = (reply: Reply) => JSON.parse(String(reply.body));
