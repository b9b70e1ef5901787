import { byName } from "../../src/base/by-name.ts";
import { NumberColumn } from "../../src/base/number-column.ts";
import type { RenderInput } from "../../src/metrics/families/family.ts";
import {
  type DetailNumber,
  type ListedNumber,
  type ListedText,
  NODE_STATUSES,
  type NodeStatus,
} from "../../src/model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionStatus } from "../../src/model/session.ts";
import {
  COLLECTORS,
  type Fleet,
  type SessionNodes,
  type SessionSummary,
  type Snapshot,
} from "../../src/model/snapshot.ts";
import type { ScopeData } from "../../src/policy/cel/field-readers.ts";
import { fleetAggregates } from "../../src/policy/cel/fleet-aggregates.ts";
import { fieldColumns } from "../inventory/inventory-fixtures.ts";

/** A node of a fleet. Absent fields are missing. */
export type NodeFixture = Partial<
  Record<ListedText, string> &
    Record<ListedNumber | DetailNumber | "listedAt" | "detailedAt" | "detailedAtEpochMs", number>
> & { readonly id: string; readonly status?: NodeStatus };

/** Returns a fleet with a slot for each fixture; null: an empty slot. */
export function buildFleet(fixtures: readonly (NodeFixture | null)[], settledAt: number | null = 0): Fleet {
  const slots = fixtures.length;
  const numbers = (read: (node: NodeFixture) => number | undefined) =>
    NumberColumn.from(fixtures.map((node) => (node === null ? Number.NaN : (read(node) ?? Number.NaN))));
  const locations: { country: string; region: string }[] = [];
  const locationIndex = Uint32Array.from(fixtures, (node) => {
    const country = node?.country ?? "";
    const region = node?.region ?? "";
    const known = locations.findIndex((one) => one.country === country && one.region === region);
    return known < 0 ? locations.push({ country, region }) - 1 : known;
  });
  return {
    slots,
    count: fixtures.filter((node) => node !== null).length,
    ids: fixtures.map((node) => node?.id ?? ""),
    ...fieldColumns(
      slots,
      (name, slot) => fixtures[slot]?.[name] ?? "",
      (name, slot) => fixtures[slot]?.[name] ?? Number.NaN,
    ),
    locationIndex: locationIndex,
    locations: locations,
    status: Uint8Array.from(fixtures, (node) => NODE_STATUSES.indexOf(node?.status ?? "online")),
    listedAt: numbers(({ listedAt }) => listedAt ?? 0),
    otherStatusAt: numbers(() => undefined),
    detailedAt: numbers(({ detailedAt }) => detailedAt),
    detailedAtEpochMs: numbers(({ detailedAtEpochMs }) => detailedAtEpochMs),
    detailLastSeenMs: numbers(({ lastSeenMs }) => lastSeenMs),
    usageKnown: true,
    settledAt,
    settledFrom: null,
    walkedAt: settledAt,
    lastWalk:
      settledAt === null
        ? null
        : {
            complete: true,
            completeWalks: 9,
            fullWalks: 9,
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
  /** 0 if absent: its sessions fail now. */
  readonly quietWalks?: number;
  readonly sentBytes?: number;
  readonly receivedBytes?: number;
}

/** Returns totals with only these sessions. */
export function buildSessions(
  nodes: readonly (SessionNodeFixture | null)[],
  {
    counts = {},
    isFolded = false,
    isUnassigned = false,
    ...rest
  }: Partial<Omit<SessionSummary, "counts">> &
    Partial<Pick<SessionNodes, "isFolded" | "isUnassigned">> & { counts?: Record<string, number> } = {},
): SessionSummary {
  const numbers = (read: (node: SessionNodeFixture) => number | undefined) =>
    Float64Array.from(nodes, (node) => (node === null ? 0 : (read(node) ?? 0)));
  return {
    settledAt: 0,
    observedFrom: 0,
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
      isFolded,
      isUnassigned,
    },
    ...rest,
    counts: Float64Array.from(
      SESSION_STATUSES.flatMap((status) => SESSION_TYPES.map((type) => counts[`${status} ${type}`] ?? 0)),
    ),
  };
}

/** Samples older than this are not exported. */
export const STALE_AFTER_MS = 180_000;

/** Returns the input of a rendering of a partial snapshot. */
export function renderInput(
  snapshot: Partial<Snapshot>,
  { options, ...rest }: Partial<Omit<RenderInput, "options">> & { options?: Partial<RenderInput["options"]> } = {},
): RenderInput {
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
    staleAfterMs: byName(COLLECTORS, () => STALE_AFTER_MS),
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

/** Returns a snapshot in the form that expressions read. */
export const scopeOf = (
  { fleet, sessions }: Pick<Snapshot, "fleet" | "sessions">,
  serviceTime: ScopeData["serviceTime"],
): ScopeData => ({ fleet, sessions, serviceTime, aggregates: fleetAggregates(fleet) });
