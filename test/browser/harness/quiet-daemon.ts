import type { WebDeps } from "../../../src/web/http/route.ts";

/** A collector that is off. */
export const COLLECTOR_OFF = {
  planned: null,
  last_success_at: null,
  age_seconds: null,
  nodes_read: null,
  failure: null,
};

/** Returns the status of an idle daemon. */
export function quietStatus(): Pick<WebDeps, "status" | "budget"> {
  return {
    status: () => ({
      version: "0.1.0",
      leader: null,
      config_rejected_at: null,
      links: { runbook: null, grafana: null },
      started_at: "2026-11-21T03:00:00.000Z",
      now: "2026-11-21T03:10:00.000Z",
      nodes: null,
      sessions: null,
      collectors: { nodes: COLLECTOR_OFF },
    }),
    budget: () => ({
      reserve: 0.2,
      categories: {},
      plan: { requests_per_minute: null, concurrent_requests: null },
      month: {
        started_at: "2026-11-01T00:00:00.000Z",
        ends_at: "2026-12-01T00:00:00.000Z",
        calls: 0,
        calls_limit: null,
      },
    }),
  };
}
