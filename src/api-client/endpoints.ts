import type { EndpointLabel } from "../model/label-values.ts";
import type { NodeId } from "../model/node.ts";
import type { ActionRequest } from "../model/remediation/episode.ts";
import type { Category } from "../rate-limit/limits.ts";

/** Page number and page size to request. */
export interface PageQuery {
  readonly page: number;
  readonly limit: number;
}

/**
 * The endpoints that the daemon calls (spec, section 4). The key is the value of the label `endpoint`; `scope` is what the
 * API key needs (spec, section 5).
 */
export const ENDPOINTS = {
  nodes_list: { category: "node_management", method: "GET", scope: "nodes:read" },
  node: { category: "node_management", method: "GET", scope: "nodes:read" },
  node_quarantine: { category: "node_management", method: "POST", scope: "nodes:write" },
  node_reboot: { category: "node_management", method: "POST", scope: "nodes:write" },
  node_disconnect: { category: "node_management", method: "POST", scope: "nodes:write" },
  sessions_list: { category: "session_monitoring", method: "GET", scope: "sessions:read" },
  stats: { category: "session_monitoring", method: "GET", scope: "sessions:read" },
  hourly: { category: "session_monitoring", method: "GET", scope: "sessions:read" },
} as const satisfies Record<EndpointLabel, { category: Category; method: "GET" | "POST"; scope: string }>;

type LabelOf<Method> = {
  [Label in EndpointLabel]: (typeof ENDPOINTS)[Label]["method"] extends Method ? Label : never;
}[EndpointLabel];

/** A call that reads. */
export interface Call {
  readonly endpoint: LabelOf<"GET">;
  readonly path: string;
}

/** A call that changes something. It is not a {@link Call}, so that code with retries does not accept it. */
export interface ActionCall {
  readonly endpoint: LabelOf<"POST">;
  readonly path: string;
  /** JSON, or null if the request has no body. */
  readonly body: string | null;
}

const pagePath = (endpoint: Call["endpoint"], path: string, { page, limit }: PageQuery): Call => ({
  endpoint,
  path: `${path}?page=${page}&limit=${limit}`,
});

/** Spec, section 4.1. */
export const listNodesCall = (query: PageQuery): Call => pagePath("nodes_list", "/v1/nodes", query);
/** Spec, section 4.2. */
export const readNodeCall = (id: string): Call => ({ endpoint: "node", path: `/v1/nodes/${encodeURIComponent(id)}` });
/** Spec, section 4.6, without a status filter. */
export const listSessionsCall = (query: PageQuery): Call => pagePath("sessions_list", "/v1/sessions", query);
/** Spec, section 4.8. */
export const readStatsCall: Call = { endpoint: "stats", path: "/v1/sessions/stats" };
/** Spec, section 4.9. */
export const readHourlyCall: Call = { endpoint: "hourly", path: "/v1/sessions/stats/hourly" };

/** Spec, sections 4.3 to 4.5. */
export function actionCall(id: NodeId, request: ActionRequest): ActionCall {
  const path = `/v1/nodes/${encodeURIComponent(id)}/${request.kind}`;
  switch (request.kind) {
    case "quarantine": {
      const { reason, durationMinutes } = request;
      return { endpoint: "node_quarantine", path, body: JSON.stringify({ reason, duration_minutes: durationMinutes }) };
    }
    case "reboot":
      return { endpoint: "node_reboot", path, body: JSON.stringify({ force: request.force }) };
    case "disconnect":
      // The spec shows no request body for it.
      return { endpoint: "node_disconnect", path, body: null };
    default:
      return request satisfies never;
  }
}
