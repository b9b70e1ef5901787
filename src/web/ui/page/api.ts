import type { ExplanationView } from "../../api/remediation-views.ts";
import type { ActionView } from "../../api/row-views.ts";

/** `GET api/v1/status`, as far as the page shows it. */
export interface Status {
  readonly version: string;
  readonly started_at: string;
  readonly now: string;
  readonly nodes: Readonly<Record<string, number>> | null;
  readonly sessions: Readonly<Record<string, number>> | null;
  readonly collectors: Readonly<Record<string, Collector>>;
  readonly takes_orders: boolean;
  readonly warden: RemediationStatus;
}

/** How one collector stands. */
export interface Collector {
  readonly planned: {
    readonly wish_seconds: number;
    readonly interval_seconds: number;
    readonly fresh_seconds: number;
    readonly stretch: number;
    readonly bound_by: string | null;
    readonly calls_per_minute: number;
  } | null;
  readonly age_seconds: { readonly median: number; readonly max: number } | null;
  readonly complete: boolean;
  readonly failure: { readonly reason: string; readonly message: string } | null;
}

/** What holds every action, and what the limits come to. */
export interface RemediationStatus {
  readonly mode: string;
  readonly paused: { readonly at: string; readonly reason: string } | null;
  readonly breaker: { readonly opened_at: string; readonly nodes: number } | null;
  readonly trust: readonly { readonly reason: string; readonly detail: string }[];
  readonly storm_until: string | null;
  readonly journal: string | null;
  readonly in_flight: number;
  readonly limits: Readonly<Record<string, number>>;
  readonly awaiting_approval: number;
}

/** `GET api/v1/budget`. */
export interface Budget {
  readonly reserve: number;
  readonly categories: Readonly<Record<string, Category>>;
  readonly plan: { readonly requests_per_minute: number | null; readonly concurrent_requests: number | null };
  readonly month: {
    readonly started_at: string;
    readonly ends_at: string;
    readonly calls: number;
    readonly calls_limit: number | null;
  };
}

/** A rate limit of the service, and what is left of it. */
export interface Category {
  readonly configured: { readonly requests: number; readonly burst: number; readonly window_seconds: number };
  readonly stated: { readonly limit: number; readonly remaining: number; readonly age_seconds: number } | null;
  readonly remaining_at_least: number | null;
  readonly calls: number;
  readonly in_flight: number;
  readonly consecutive_refusals: number;
  readonly next_poll: { readonly in_seconds: number | null; readonly held_by: string | null };
}

/** One of `GET api/v1/policies`. */
export interface Policy {
  readonly name: string;
  readonly mode: string;
  readonly fallen: boolean;
  readonly proven: boolean;
  readonly pending: number;
  readonly firing: number;
  readonly episodes: Readonly<Record<string, number>>;
  readonly rule: {
    readonly mode: string;
    readonly match: string | null;
    readonly when: string;
    readonly for_seconds: number;
    readonly clear_for_seconds: number;
    readonly steps: readonly StepView[];
    readonly windows: readonly string[];
  };
}

/** A step of a policy's ladder. */
export interface StepView {
  readonly action: string;
  readonly force?: boolean;
  readonly duration_seconds?: number;
  readonly receiver?: string;
}

/** `GET api/v1/fleet`: columns by slot. */
export interface FleetDocument {
  readonly revision: number;
  readonly statuses: readonly string[];
  readonly marks: readonly string[];
  readonly places: readonly { readonly country: string; readonly region: string }[];
  readonly ids: readonly string[];
  readonly names: readonly string[];
  readonly place: readonly number[];
  /** A digit a slot: an index into `statuses`. */
  readonly status: string;
  readonly mark: string;
}

/** `GET api/v1/history`. */
export interface HistoryDocument {
  readonly step_seconds: number;
  readonly at: readonly number[];
  readonly series: Readonly<Record<string, readonly (number | null)[]>>;
}

/** What the fleet knows of a node; absent where it is there no more. */
export interface NodeFields {
  readonly name: string | null;
  readonly status: string;
  readonly country: string | null;
  readonly region: string | null;
  readonly ip_address: string | null;
  readonly version: string | null;
  readonly last_seen: string | null;
  readonly uptime_hours: number | null;
  readonly active_sessions: number | null;
  readonly bandwidth_gb: number | null;
  readonly cpu_usage_ratio: number | null;
  readonly memory_usage_ratio: number | null;
  readonly disk_usage_ratio: number | null;
  readonly created_at: string | null;
  readonly age_seconds: number | null;
  readonly detail_age_seconds: number | null;
  readonly sessions: Readonly<Record<string, number>> | null;
}

/** `GET api/v1/nodes/ID`. */
export type NodeDocument = ExplanationView & Partial<NodeFields> & { readonly id: string };

/** A list of rows. */
export interface RowList<T> {
  readonly data: readonly T[];
}

/** Why an answer is none. Status 0: nobody answered. */
export interface RequestError {
  readonly status: number;
  readonly message: string;
}

/** An answer, or why there is none. */
export type ApiResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: RequestError };

/** An answer comes from memory: one that takes this long is lost. */
const REQUEST_TIMEOUT_MS = 10_000;

/** Asks a route below `api/v1/`. Never rejects. */
export const getJson = <T>(path: string): Promise<ApiResult<T>> => request<T>(path, {});

/** Gives an order. Never rejects. */
export const postCommand = (
  path: string,
  token: string,
  body: object | null,
): Promise<ApiResult<{ readonly message: string }>> =>
  request(path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, ...(body === null ? {} : { "content-type": "application/json" }) },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });

/** Actions that wait for a person. */
export const fetchApprovals = (): Promise<ApiResult<RowList<ActionView>>> =>
  getJson("actions?state=awaiting&limit=100");

async function request<T>(path: string, init: RequestInit): Promise<ApiResult<T>> {
  try {
    const response = await fetch(`api/v1/${path}`, { ...init, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
    const value: unknown = await response.json();
    if (response.ok) return { ok: true, value: value as T };
    const message = (value as { message?: unknown } | null)?.message;
    return { ok: false, error: { status: response.status, message: String(message ?? response.statusText) } };
  } catch {
    return { ok: false, error: { status: 0, message: "the daemon does not answer" } };
  }
}
