import { OTHER_LABEL } from "../../model/label-values.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionStatus } from "../../model/session.ts";
import { SESSION_DURATION_BUCKETS_SECONDS, type SessionNodes, type SessionSummary } from "../../model/snapshot.ts";
import { boundText } from "../text-format.ts";
import { type AggregateFamily, gaugesOf, isFresh, type NodeFamily } from "./family.ts";

/**
 * Returns whether the list shows sessions with this status. If it never shows failed ones, their number is unknown, not
 * zero.
 */
const isListed = (status: SessionStatus, { failedListed }: SessionSummary): boolean =>
  failedListed || (status !== "error" && status !== "timeout");

/** Leaves out zeros of statuses and types that are not in the spec. */
const zeroAsMissing = (value: number, ...labels: readonly string[]): number =>
  value === 0 && labels.includes("unknown") ? Number.NaN : value;

/** The column of a status that the list does not show. */
const UNLISTED = new Uint32Array(0);

const nodeSessions: NodeFamily = {
  name: "proxynet_node_sessions",
  type: "gauge",
  help: "Sessions on the node by status, counted from the session list.",
  labels: ["node_id", "status"],
  source: "sessions",
  splitBy: { label: "status", values: SESSION_STATUSES },
  columns({ snapshot }) {
    const view = snapshot.sessions!;
    return view.nodes.counts.map((column, state) => (isListed(SESSION_STATUSES[state]!, view) ? column : UNLISTED));
  },
  fill({ snapshot }, start, end, out) {
    const view = snapshot.sessions!;
    const states = SESSION_STATUSES.length;
    for (const [state, status] of SESSION_STATUSES.entries()) {
      const counts = view.nodes.counts[state]!;
      const listed = isListed(status, view);
      for (let slot = start; slot < end; slot++) {
        out[(slot - start) * states + state] = listed ? zeroAsMissing(counts[slot]!, status) : Number.NaN;
      }
    }
  },
};

interface CounterRow extends Pick<NodeFamily, "name" | "help"> {
  readonly column: (nodes: SessionNodes) => Float64Array;
}

const byteCounter = ({ column, ...row }: CounterRow): NodeFamily => ({
  ...row,
  type: "counter",
  labels: ["node_id"],
  source: "sessions",
  columns: ({ snapshot }) => [column(snapshot.sessions!.nodes)],
  fill: ({ snapshot }, start, end, out) => out.set(column(snapshot.sessions!.nodes).subarray(start, end)),
});

/** Families with at least one line per node that has had sessions. */
export const SESSION_NODE_FAMILIES: readonly NodeFamily[] = [
  nodeSessions,
  byteCounter({
    name: "proxynet_session_sent_bytes_total",
    help: "Bytes sent by the node's sessions, as observed in the session list.",
    column: (nodes) => nodes.sentBytes,
  }),
  byteCounter({
    name: "proxynet_session_received_bytes_total",
    help: "Bytes received by the node's sessions, as observed in the session list.",
    column: (nodes) => nodes.receivedBytes,
  }),
];

/** Creates a gauge of all sessions. */
const sessionsGauge = gaugesOf("sessions", (input) => {
  const { sessions } = input.snapshot;
  return sessions !== null && isFresh(input, "sessions", sessions.settledAt) ? sessions : null;
});

/** Families of all sessions together. */
export const SESSION_FAMILIES: readonly AggregateFamily[] = [
  sessionsGauge({
    name: "proxynet_sessions",
    help: "Sessions by status and type, counted from the session list.",
    labels: ["status", "session_type"],
    *samples(view) {
      for (const [state, status] of SESSION_STATUSES.entries()) {
        if (!isListed(status, view)) continue;
        for (const [type, sessionType] of SESSION_TYPES.entries()) {
          const count = view.counts[state * SESSION_TYPES.length + type]!;
          yield { labels: { status, session_type: sessionType }, value: zeroAsMissing(count, status, sessionType) };
        }
      }
    },
  }),
  sessionsGauge({
    name: "proxynet_country_sessions",
    help: "Sessions by country, counted from the session list.",
    labels: ["country"],
    *samples({ countries }) {
      for (const [country, value] of countries) yield { labels: { country }, value };
    },
  }),
  sessionsGauge({
    name: "proxynet_customer_sessions",
    help: "Sessions by customer, for the largest customers; the rest are counted as `other`.",
    labels: ["customer_id"],
    *samples({ customers }, { options }) {
      let rest = 0;
      let seriesLeft = options.topCustomers;
      for (const { customerId, sessions } of customers) {
        // A customer with the id `other` is added to the rest, because a series must not occur twice.
        if (seriesLeft > 0 && customerId !== OTHER_LABEL) {
          seriesLeft--;
          yield { labels: { customer_id: customerId }, value: sessions };
        } else rest += sessions;
      }
      if (rest > 0) yield { labels: { customer_id: OTHER_LABEL }, value: rest };
    },
  }),
  {
    name: "proxynet_session_duration_seconds",
    type: "histogram",
    help: "Duration of sessions that ended, as last observed.",
    labels: ["session_type"],
    source: "sessions",
    *samples({ snapshot }) {
      for (const [type, sessionType] of SESSION_TYPES.entries()) {
        const histogram = snapshot.sessions?.durations[type];
        if (histogram === undefined || (sessionType === "unknown" && histogram.count === 0)) continue;
        const labels = { session_type: sessionType };
        for (const [index, bound] of SESSION_DURATION_BUCKETS_SECONDS.entries())
          yield { suffix: "_bucket", labels: { ...labels, le: boundText(bound) }, value: histogram.counts[index]! };
        yield { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: histogram.count };
        yield { suffix: "_sum", labels, value: histogram.sum };
        yield { suffix: "_count", labels, value: histogram.count };
      }
    },
  },
];
