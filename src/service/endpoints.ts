import type { Category } from "../budget/limits.ts";
import type { EndpointLabel } from "../metrics/vocabulary.ts";

/** Number of a page and how many records were asked for. */
export interface PageQuery {
  readonly page: number;
  readonly limit: number;
}

interface Endpoint {
  readonly category: Category;
  readonly method: "GET" | "POST";
  /** Scope that the key must carry (spec, section 5). */
  readonly scope: string;
}

/**
 * The endpoints that are called (spec, section 4), a row each. The key is the value of the label `endpoint`.
 * The single-session endpoint is not among them: nothing of ours needs it.
 */
export const ENDPOINTS = {
  nodes_list: { category: "node_management", method: "GET", scope: "nodes:read" },
  node: { category: "node_management", method: "GET", scope: "nodes:read" },
  sessions_list: { category: "session_monitoring", method: "GET", scope: "sessions:read" },
  stats: { category: "session_monitoring", method: "GET", scope: "sessions:read" },
  hourly: { category: "session_monitoring", method: "GET", scope: "sessions:read" },
} as const satisfies Record<EndpointLabel, Endpoint>;

/** One call: which endpoint, and the path that its parameters make. */
export interface Call {
  readonly endpoint: EndpointLabel;
  readonly path: string;
}

const pageOf = (endpoint: EndpointLabel, path: string, { page, limit }: PageQuery): Call => ({
  endpoint,
  path: `${path}?page=${page}&limit=${limit}`,
});

/** Spec, section 4.1. */
export const listNodes = (query: PageQuery): Call => pageOf("nodes_list", "/v1/nodes", query);
/** Spec, section 4.2. */
export const readNode = (id: string): Call => ({ endpoint: "node", path: `/v1/nodes/${encodeURIComponent(id)}` });
/** Spec, section 4.6, without a status filter: whatever the list shows is wanted. */
export const listSessions = (query: PageQuery): Call => pageOf("sessions_list", "/v1/sessions", query);
/** Spec, section 4.8. */
export const readStats: Call = { endpoint: "stats", path: "/v1/sessions/stats" };
/** Spec, section 4.9. */
export const readHourly: Call = { endpoint: "hourly", path: "/v1/sessions/stats/hourly" };
