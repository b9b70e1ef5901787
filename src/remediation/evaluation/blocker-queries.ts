import { fail } from "../../base/result.ts";
import type { Clock, Obstacles } from "../../model/ports.ts";
import { alertsFire } from "../../notify/alertmanager.ts";
import { createPeer, type PeerAccess } from "../../api-client/integration-client.ts";
import { queryGives } from "./prometheus-query.ts";

/** What the obstacles stand on. Null: not configured, and whoever asks for it is told so. */
export interface ObstaclesParts {
  readonly prometheus: PeerAccess | null;
  readonly alertmanager: PeerAccess | null;
  readonly clock: Pick<Clock, "sleep">;
  /** Sent as User-Agent. */
  readonly agent: string;
}

/** Looks at Prometheus and Alertmanager, each time anew. */
export function createObstacles(parts: ObstaclesParts): Obstacles & { close(): Promise<void> } {
  const { clock, agent } = parts;
  const peerOf = (access: PeerAccess | null) => (access === null ? null : createPeer({ access, clock, agent }));
  const prometheus = peerOf(parts.prometheus);
  const alertmanager = peerOf(parts.alertmanager);
  return {
    query: async (query, signal) =>
      prometheus === null ? fail("no prometheus.url is configured") : queryGives(prometheus, query, signal),
    alerts: async (matchers, signal) =>
      alertmanager === null ? fail("no alertmanager.url is configured") : alertsFire(alertmanager, matchers, signal),
    async close() {
      await prometheus?.close();
      await alertmanager?.close();
    },
  };
}
