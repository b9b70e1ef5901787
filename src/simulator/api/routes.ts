import type { Category } from "../http/rate-limits.ts";
import type { Scope } from "./api-keys.ts";
import type { EndpointCall, EndpointResult } from "./endpoint-context.ts";
import { disconnectNode, listNodes, quarantineNode, readNode, rebootNode } from "./node-endpoints.ts";
import { listSessions, readHourly, readSession, readStatistics } from "./session-endpoints.ts";

/** One endpoint of the spec, section 4. */
export interface Route {
  readonly method: "GET" | "POST";
  /** The path as the spec writes it. */
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
  // Before the endpoint of one session, which would take "stats" for an identifier.
  { method: "GET", path: "/v1/sessions/stats", scope: "sessions:read", answer: readStatistics },
  { method: "GET", path: "/v1/sessions/stats/hourly", scope: "sessions:read", answer: readHourly },
  { method: "GET", path: "/v1/sessions/{id}", scope: "sessions:read", answer: readSession },
];

const MATCHERS = ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace("{id}", "([^/]+)")}$`),
}));

/** Where a request leads: to an endpoint, to a path that has other methods only, or nowhere. */
export type RouteMatch =
  | { readonly kind: "endpoint"; readonly route: Route; readonly id: string }
  | { readonly kind: "method_not_allowed"; readonly allowed: readonly string[] }
  | { readonly kind: "nowhere" };

/** Finds the endpoint of a path without its query. */
export function findRoute(method: string, pathname: string): RouteMatch {
  const here = MATCHERS.map(({ route, pattern }) => ({ route, match: pattern.exec(pathname) })).filter(
    ({ match }) => match !== null,
  );
  const first = here[0];
  if (first === undefined) return { kind: "nowhere" };
  const found = here.find(({ route }) => route.method === method);
  if (found === undefined)
    return { kind: "method_not_allowed", allowed: [...new Set(here.map(({ route }) => route.method))] };
  return { kind: "endpoint", route: found.route, id: decodeSegment(found.match?.[1] ?? "") };
}

/** The category whose limit a path falls under. What is no session endpoint has the standard tier (section 8.2). */
export const categoryOf = (pathname: string): Category =>
  /^\/v1\/sessions(\/|$)/.test(pathname) ? "session_monitoring" : "node_management";

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
