import { decodePercent } from "../../base/text.ts";
import type { Scope } from "../../config/schema/scenario.ts";
import type { Category } from "../http/rate-limits.ts";
import type { EndpointCall, EndpointResult } from "./endpoint-context.ts";
import { disconnectNode, listNodes, quarantineNode, readNode, rebootNode } from "./node-endpoints.ts";
import { listSessions, readHourly, readSession, readStatistics } from "./session-endpoints.ts";

/** One endpoint of the spec, section 4. */
export interface Route {
  readonly method: "GET" | "POST";
  /** The path template of the spec. */
  readonly path: string;
  readonly scope: Scope;
  readonly answer: (call: EndpointCall) => EndpointResult;
}

const ROUTES: readonly Route[] = [
  { method: "GET", path: "/v1/nodes", scope: "nodes:read", answer: listNodes },
  { method: "GET", path: "/v1/nodes/{id}", scope: "nodes:read", answer: readNode },
  { method: "POST", path: "/v1/nodes/{id}/quarantine", scope: "nodes:write", answer: quarantineNode },
  { method: "POST", path: "/v1/nodes/{id}/reboot", scope: "nodes:write", answer: rebootNode },
  { method: "POST", path: "/v1/nodes/{id}/disconnect", scope: "nodes:write", answer: disconnectNode },
  { method: "GET", path: "/v1/sessions", scope: "sessions:read", answer: listSessions },
  // These precede the endpoint of one session, which would match "stats" as an id.
  { method: "GET", path: "/v1/sessions/stats", scope: "sessions:read", answer: readStatistics },
  { method: "GET", path: "/v1/sessions/stats/hourly", scope: "sessions:read", answer: readHourly },
  { method: "GET", path: "/v1/sessions/{id}", scope: "sessions:read", answer: readSession },
];

const MATCHERS = ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace("{id}", "([^/]+)")}$`),
}));

/** The endpoint of a request, or why there is none. */
export type RouteMatch =
  | { readonly kind: "endpoint"; readonly route: Route; readonly id: string }
  | { readonly kind: "method_not_allowed"; readonly allowed: readonly string[] }
  | { readonly kind: "not_found" };

/** Finds the endpoint for a method and a path, which must not include the query. */
export function findRoute(method: string, pathname: string): RouteMatch {
  const candidates = MATCHERS.map(({ route, pattern }) => ({ route, match: pattern.exec(pathname) })).filter(
    ({ match }) => match !== null,
  );
  if (candidates.length === 0) return { kind: "not_found" };
  const found = candidates.find(({ route }) => route.method === method);
  if (found === undefined)
    return { kind: "method_not_allowed", allowed: [...new Set(candidates.map(({ route }) => route.method))] };
  return { kind: "endpoint", route: found.route, id: decodePercent(found.match?.[1] ?? "") };
}

/**
 * Returns the category whose limit applies to a path. Paths without a category have the standard tier (section 8.2).
 */
export const categoryOf = (pathname: string): Category =>
  /^\/v1\/sessions(\/|$)/.test(pathname) ? "session_monitoring" : "node_management";
