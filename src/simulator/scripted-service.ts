import { type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import { fail, ok } from "../base/result.ts";
import type { PolicyTest, ScriptedNode } from "../config/schema/policy-test.ts";
import type { NodeStatus } from "../model/node.ts";
import { type Series, valueAt } from "../model/policy/series.ts";
import type { Clock, Transport, TransportRequest, TransportResponse } from "../model/ports.ts";
import { isoAt } from "../model/time.ts";

/** Time from a request to its response. Without latency, consecutive requests would have the same time. */
const LATENCY_MS: DurationMs = 50;
/** Uptime of the nodes at the start of a test. */
const INITIAL_UPTIME_MS: DurationMs = 1_000 * HOUR_MS;
const ONGOING_STATUSES: ReadonlySet<string> = new Set(["active", "connecting"]);
/** Policy tests do not test rate limits. */
const CALL_LIMIT = 1_000_000;

/**
 * Creates a transport to a service that returns the scripted nodes of a policy test. It accepts every action and
 * executes none. The test starts now, on the monotonic time of `clock`.
 */
export function createScriptedTransport(test: PolicyTest, clock: Clock): Transport {
  const startedAt = clock.monotonic();
  return {
    async request(request, signal) {
      await clock.sleep(LATENCY_MS, signal);
      if (signal.aborted) return fail({ kind: "aborted", message: "the request was aborted" });
      return ok(responseOf(test, request, clock.monotonic() - startedAt));
    },
    close: () => Promise.resolve(),
  };
}

function responseOf(test: PolicyTest, { method, path }: TransportRequest, elapsed: DurationMs): TransportResponse {
  const at = test.startsAt + elapsed;
  const url = new URL(path, "http://service.invalid");
  const [, , resource, id] = url.pathname.split("/").map(decodeURIComponent);
  const answer = (status: number, body: unknown): TransportResponse => ({
    status,
    headers: {
      "content-type": "application/json",
      date: new Date(at).toUTCString(),
      "x-ratelimit-limit": String(CALL_LIMIT),
      "x-ratelimit-remaining": String(CALL_LIMIT),
      "x-ratelimit-reset": String(Math.ceil(at / SECOND_MS)),
    },
    body: Buffer.from(JSON.stringify(body)),
  });
  const node = test.nodes.find((node) => node.id === id);
  const page = (records: readonly object[]) => answer(200, pageOf(url.searchParams, records));
  if (resource === "nodes" && id === undefined) return page(test.nodes.map((node) => listed(test, node, elapsed)));
  if (resource === "sessions") return page(test.nodes.flatMap((node) => sessionsOf(test, node, elapsed)));
  if (node === undefined) return answer(404, { error: "not_found", message: "there is no such node" });
  return answer(200, method === "POST" ? { success: true } : detailed(test, node, elapsed));
}

function pageOf(query: URLSearchParams, records: readonly object[]): object {
  const [page, limit] = [Number(query.get("page") ?? 1), Number(query.get("limit") ?? records.length)];
  const data = records.slice((page - 1) * limit, page * limit);
  return { data, pagination: { page, limit, total: records.length } };
}

/** A node in the list form of the spec (section 2.1). */
function listed({ startsAt }: PolicyTest, node: ScriptedNode, elapsed: DurationMs): object {
  const { id, name, country, region, version, status } = node;
  const upMs = elapsed - bootedAt(status, elapsed);
  return {
    id,
    name,
    country,
    region,
    version,
    status: valueAt(status, elapsed),
    ip_address: "192.0.2.1",
    last_seen: isoAt(startsAt + lastSeenAt(node, elapsed)),
    uptime_hours: node.uptimeHours === null ? Math.floor(upMs / HOUR_MS) : valueAt(node.uptimeHours, elapsed),
    active_sessions: valueAt(node.activeSessions, elapsed),
    bandwidth_gb: valueAt(node.bandwidthGb, elapsed),
  };
}

const detailed = (test: PolicyTest, node: ScriptedNode, elapsed: DurationMs): object => ({
  ...listed(test, node, elapsed),
  cpu_usage: valueAt(node.cpuUsage, elapsed),
  memory_usage: valueAt(node.memoryUsage, elapsed),
  disk_usage: valueAt(node.diskUsage, elapsed),
  created_at: isoAt(test.startsAt - INITIAL_UPTIME_MS),
  updated_at: isoAt(test.startsAt - INITIAL_UPTIME_MS),
});

/** Returns the sessions of a node. Open sessions keep their ids; ended ones have new ids at each walk. */
function sessionsOf(
  { startsAt, intervalMs }: PolicyTest,
  { id, country, sessions }: ScriptedNode,
  elapsed: DurationMs,
): object[] {
  return Object.entries(sessions).flatMap(([status, counts]) =>
    Array.from({ length: valueAt(counts, elapsed) }, (_, index) => ({
      id: `sess_${id}_${status}_${ONGOING_STATUSES.has(status) ? 0 : Math.floor(elapsed / intervalMs)}_${index}`,
      customer_id: "cust_1",
      node_id: id,
      status,
      started_at: isoAt(startsAt),
      duration_seconds: Math.floor(elapsed / SECOND_MS),
      bytes_sent: 0,
      bytes_received: 0,
      target_host: "example.com",
      target_port: 443,
      country,
      session_type: "http",
    })),
  );
}

/** Returns the node's last_seen as time since the start of the test. */
function lastSeenAt({ status, lastSeen }: ScriptedNode, elapsed: DurationMs): DurationMs {
  return lastSeen === null
    ? lastInstantWhere(status, elapsed, (value) => value === "online")
    : lastInstantWhere(lastSeen, elapsed, (value) => value === "now");
}

/** Returns the last time up to `elapsed` at which a matching value applied, or 0 if none did. */
function lastInstantWhere<Value>(
  series: Series<Value>,
  elapsed: DurationMs,
  matches: (value: Value) => boolean,
): DurationMs {
  let [begin, last] = [0, 0];
  for (const [index, { value, forMs }] of series.entries()) {
    const end = index === series.length - 1 ? Number.POSITIVE_INFINITY : begin + forMs;
    if (begin <= elapsed && matches(value)) last = Math.min(end, elapsed);
    begin = end;
  }
  return last;
}

/** Returns when the node last booted, as time since the start of the test; negative if it has not rebooted since. */
function bootedAt(status: Series<NodeStatus>, elapsed: DurationMs): DurationMs {
  let [end, booted] = [0, -INITIAL_UPTIME_MS];
  for (const { value, forMs } of status.slice(0, -1)) {
    end += forMs;
    if (value === "rebooting" && end <= elapsed) booted = end;
  }
  return booted;
}
