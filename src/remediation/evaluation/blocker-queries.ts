import { createIntegrationClient, type IntegrationAccess } from "../../api-client/integration-client.ts";
import { fail } from "../../base/result.ts";
import type { Clock, ExternalBlockers } from "../../model/ports.ts";
import { hasFiringAlerts } from "../../notify/alertmanager.ts";
import { queryHasResult } from "./prometheus-query.ts";

/** What the obstacles stand on. Null: not configured, and whoever asks for it is told so. */
export interface ExternalBlockerDeps {
  readonly prometheus: IntegrationAccess | null;
  readonly alertmanager: IntegrationAccess | null;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/** Looks at Prometheus and Alertmanager, each time anew. */
export function createExternalBlockers(parts: ExternalBlockerDeps): ExternalBlockers & { close(): Promise<void> } {
  const { clock, agent } = parts;
  const peerOf = (access: IntegrationAccess | null) =>
    access === null ? null : createIntegrationClient({ access, clock, agent });
  const prometheus = peerOf(parts.prometheus);
  const alertmanager = peerOf(parts.alertmanager);
  return {
    hasQueryResult: async (query, signal) =>
      prometheus === null ? fail("no prometheus.url is configured") : queryHasResult(prometheus, query, signal),
    hasFiringAlerts: async (matchers, signal) =>
      alertmanager === null
        ? fail("no alertmanager.url is configured")
        : hasFiringAlerts(alertmanager, matchers, signal),
    async close() {
      await prometheus?.close();
      await alertmanager?.close();
    },
  };
}
