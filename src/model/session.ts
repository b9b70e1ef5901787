/** The session statuses of the spec (section 3.2), and `unknown` for any other. */
export const SESSION_STATUSES = ["active", "connecting", "closed", "error", "timeout", "unknown"] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

/** The session types of the spec (section 2.2), and `unknown` for any other. */
export const SESSION_TYPES = ["socks5", "http", "https", "websocket", "unknown"] as const;
export type SessionType = (typeof SESSION_TYPES)[number];

/** A session of the list (spec, section 2.2), without target host and port, which are not used. */
export interface SessionRecord {
  readonly id: string;
  readonly customerId: string | null;
  readonly nodeId: string | null;
  readonly status: SessionStatus;
  readonly type: SessionType;
  /** Milliseconds since the Unix epoch, on the service's clock. */
  readonly startedAtMs: number | null;
  readonly durationSeconds: number | null;
  readonly bytesSent: number | null;
  readonly bytesReceived: number | null;
  readonly country: string | null;
}

/** Aggregate statistics (spec, section 2.3). A field that was absent or null is null. */
export interface SessionStatistics {
  readonly activeSessions: number | null;
  readonly sessionsToday: number | null;
  readonly bandwidthTodayGb: number | null;
  readonly peakConcurrentSessions: number | null;
  readonly averageDurationSeconds: number | null;
  readonly topCountries: TopList;
  readonly topProtocols: TopList;
}

/** Sessions by country or protocol. */
export type TopList = readonly (readonly [name: string, sessions: number])[];

/** One hour of the hourly statistics (spec, section 2.4). */
export interface HourlyEntry {
  /** Start of the hour, milliseconds since the Unix epoch, on the service's clock. */
  readonly hourMs: number;
  readonly activeSessions: number | null;
  readonly newSessions: number | null;
  readonly bandwidthGb: number | null;
}
