import type { Json } from "../mutation.ts";

/** A node in detail form (spec, section 2.1). */
export const node = {
  id: "node_1",
  name: "fra-1",
  status: "online",
  country: "DE",
  region: "eu-west",
  ip_address: "10.0.0.1",
  version: "2.4.1",
  last_seen: "2026-03-01T00:00:00Z",
  uptime_hours: 300,
  active_sessions: 12,
  bandwidth_gb: 10.5,
  cpu_usage: 0.4,
  memory_usage: 0.5,
  disk_usage: 0.6,
  created_at: "2025-03-01T00:00:00Z",
  updated_at: "2026-02-01T00:00:00.123Z",
};

/** A session in list form (spec, section 2.2). */
export const session = {
  id: "sess_1",
  customer_id: "cust_1",
  node_id: "node_1",
  status: "active",
  started_at: "2026-03-01T00:00:00Z",
  duration_seconds: 60,
  bytes_sent: 1_000,
  bytes_received: 2_000,
  target_host: "example.net",
  target_port: 443,
  country: "DE",
  session_type: "https",
};

/** Session statistics (spec, section 2.3). */
export const statistics = {
  active_sessions: 12,
  total_sessions_today: 100,
  bandwidth_today_gb: 3.5,
  peak_concurrent_sessions: 20,
  average_session_duration_seconds: 300,
  top_countries: [
    { country: "DE", sessions: 7 },
    { country: "FR", sessions: 5 },
  ],
  top_protocols: [{ protocol: "https", sessions: 12 }],
};

/** Hourly statistics (spec, section 2.4). */
export const hours = {
  data: [
    { hour: "2026-03-01T00:00:00Z", active_sessions: 3, new_sessions: 4, bandwidth_gb: 1.5 },
    { hour: "2026-03-01T01:00:00Z", active_sessions: 4, new_sessions: 5, bandwidth_gb: 2.5 },
  ],
};

/** The answer to a quarantine (spec, section 4.3). */
export const actionReply = {
  success: true,
  message: "node_1 is quarantined",
  reason: "maintenance",
  duration_minutes: 60,
  disconnected_sessions: 3,
};

/** A page of a list (spec, section 2.5). */
export const pageOf = (records: readonly Json[]) => ({
  data: records,
  pagination: { page: 1, limit: 50, total: records.length },
});
