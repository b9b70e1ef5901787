import type { ExportOptions, RenderInput } from "../../src/metrics/families/family.ts";
import { NODE_STATUSES, type NodeStatus } from "../../src/model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionStatus } from "../../src/model/session.ts";
import type { Fleet, SessionSummary, Snapshot } from "../../src/model/snapshot.ts";

/** A node by what matters to a test; what is not said is missing. */
export interface NodeFixture {
  readonly id: string;
  readonly name?: string;
  readonly country?: string;
  readonly region?: string;
  readonly version?: string;
  readonly ipAddress?: string;
  readonly status?: NodeStatus;
  readonly lastSeenMs?: number;
  readonly uptimeHours?: number;
  readonly activeSessions?: number;
  readonly bandwidthGb?: number;
  readonly cpuUsage?: number;
  readonly memoryUsage?: number;
  readonly diskUsage?: number;
  readonly createdAtMs?: number;
  readonly updatedAtMs?: number;
  readonly listedAt?: number;
  readonly detailedAt?: number;
  readonly detailedAtEpochMs?: number;
}

/** A fleet with a slot for each sketch; null: an empty slot. */
export function buildFleet(fixtures: readonly (NodeFixture | null)[], settledAt: number | null = 0): Fleet {
  const slots = fixtures.length;
  const texts = (read: (node: NodeFixture) => string | undefined) =>
    fixtures.map((node) => (node === null ? "" : (read(node) ?? "")));
  const numbers = (read: (node: NodeFixture) => number | undefined) =>
    Float64Array.from(fixtures, (node) => (node === null ? Number.NaN : (read(node) ?? Number.NaN)));
  const places: { country: string; region: string }[] = [];
  const place = Uint32Array.from(fixtures, (node) => {
    const country = node?.country ?? "";
    const region = node?.region ?? "";
    const known = places.findIndex((one) => one.country === country && one.region === region);
    return known < 0 ? places.push({ country, region }) - 1 : known;
  });
  return {
    slots,
    count: fixtures.filter((node) => node !== null).length,
    ids: texts(({ id }) => id),
    name: texts(({ name }) => name),
    ipAddress: texts(({ ipAddress }) => ipAddress),
    version: texts(({ version }) => version),
    locationIndex: place,
    locations: places,
    status: Uint8Array.from(fixtures, (node) => NODE_STATUSES.indexOf(node?.status ?? "online")),
    lastSeenMs: numbers(({ lastSeenMs }) => lastSeenMs),
    uptimeHours: numbers(({ uptimeHours }) => uptimeHours),
    activeSessions: numbers(({ activeSessions }) => activeSessions),
    bandwidthGb: numbers(({ bandwidthGb }) => bandwidthGb),
    cpuUsage: numbers(({ cpuUsage }) => cpuUsage),
    memoryUsage: numbers(({ memoryUsage }) => memoryUsage),
    diskUsage: numbers(({ diskUsage }) => diskUsage),
    createdAtMs: numbers(({ createdAtMs }) => createdAtMs),
    updatedAtMs: numbers(({ updatedAtMs }) => updatedAtMs),
    listedAt: numbers(({ listedAt }) => listedAt ?? 0),
    detailedAt: numbers(({ detailedAt }) => detailedAt),
    detailedAtEpochMs: numbers(({ detailedAtEpochMs }) => detailedAtEpochMs),
    usageKnown: true,
    settledAt,
    walkedAt: settledAt,
    lastWalk:
      settledAt === null
        ? null
        : {
            complete: true,
            completeWalks: 9,
            seenNodes: slots,
            missing: 0,
            total: slots,
            isAborted: false,
            rejected: 0,
            at: settledAt,
          },
  };
}

/** Sessions of one node. */
export interface SessionNodeFixture {
  readonly id: string;
  readonly counts?: Partial<Record<SessionStatus, number>>;
  /** 0 unless said: its sessions fail now. */
  readonly quietWalks?: number;
  readonly sentBytes?: number;
  readonly receivedBytes?: number;
}

/** No sessions but those said. */
export function buildSessions(
  nodes: readonly (SessionNodeFixture | null)[],
  { counts = {}, ...rest }: Partial<Omit<SessionSummary, "counts">> & { counts?: Record<string, number> } = {},
): SessionSummary {
  const numbers = (read: (node: SessionNodeFixture) => number | undefined) =>
    Float64Array.from(nodes, (node) => (node === null ? 0 : (read(node) ?? 0)));
  return {
    settledAt: 0,
    complete: true,
    failedListed: true,
    countries: new Map(),
    customers: [],
    durations: [],
    nodes: {
      slots: nodes.length,
      ids: nodes.map((node) => node?.id ?? ""),
      counts: SESSION_STATUSES.map((status) => numbers((node) => node.counts?.[status])),
      recent: SESSION_STATUSES.map((status) => numbers((node) => node.counts?.[status])),
      quietWalks: Uint8Array.from(nodes, (node) => node?.quietWalks ?? 0),
      sentBytes: numbers(({ sentBytes }) => sentBytes),
      receivedBytes: numbers(({ receivedBytes }) => receivedBytes),
    },
    ...rest,
    counts: Float64Array.from(
      SESSION_STATUSES.flatMap((status) => SESSION_TYPES.map((type) => counts[`${status} ${type}`] ?? 0)),
    ),
  };
}

/** Samples older than this are left out, whatever their source. */
export const STALE_AFTER_MS = 180_000;

/** All that a rendering needs, around a part of a snapshot. */
export function renderInput(
  snapshot: Partial<Snapshot>,
  { options, ...rest }: Partial<Omit<RenderInput, "options">> & { options?: Partial<ExportOptions> } = {},
): RenderInput {
  const ages = ["nodes", "details", "sessions", "stats", "hourly"].map((collector) => [collector, STALE_AFTER_MS]);
  return {
    snapshot: {
      sequence: 1,
      at: 0,
      fleet: buildFleet([], null),
      sessions: null,
      stats: null,
      hourly: null,
      ...snapshot,
    },
    now: 0,
    serviceNowMs: 0,
    staleAfterMs: Object.fromEntries(ages),
    ...rest,
    options: {
      nodeLabels: ["name", "country", "region", "version"],
      topCustomers: 20,
      deny: new Set(),
      seriesMax: 2_000_000,
      ...options,
    },
  };
}
