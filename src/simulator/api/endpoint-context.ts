import { HOUR_MS } from "../../base/duration.ts";
import { fail, type Result } from "../../base/result.ts";
import type { FaultKind, ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import { type ActiveFault, clockSkewAt } from "../http/faults.ts";
import type { World } from "../network.ts";

/** Returns the nodes in list order at `at`. The service knows no report after `seenUntil`. */
export type NodeOrder = (at: EpochMs, seenUntil: EpochMs) => readonly SimulatedNode[];

/** State that all endpoints share. */
export interface ServiceBackend {
  readonly options: ServiceOptions;
  readonly world: World;
  readonly nodeOrder: NodeOrder;
}

/** An admitted request with everything an endpoint needs to answer it. */
export interface EndpointCall {
  readonly service: ServiceBackend;
  /** The path parameter; "" if the path has none. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly body: string;
  /** Time without clock skew. */
  readonly at: EpochMs;
  readonly activeFaults: readonly ActiveFault[];
}

/** A success. Without a value, the reply has no body. */
export interface EndpointSuccess {
  readonly status: number;
  readonly value?: unknown;
}

/** An error reply. The code is for programs; the message says what is wrong and what would be right. */
export interface EndpointError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** The result of an endpoint. */
export type EndpointResult = Result<EndpointSuccess, EndpointError>;

/** Creates an error result. */
export const endpointError = (
  status: number,
  code: string,
  message: string,
): { readonly ok: false; readonly error: EndpointError } => fail({ status, code, message });

/** Returns the first active fault of a kind; null: none. */
export function findFault<K extends FaultKind["kind"]>(
  activeFaults: readonly ActiveFault[],
  kind: K,
): (Extract<FaultKind, { kind: K }> & { readonly sinceMs: EpochMs }) | null {
  for (const { fault, sinceMs } of activeFaults) {
    if (fault.kind === kind) return { ...(fault as Extract<FaultKind, { kind: K }>), sinceMs };
  }
  return null;
}

/** Number of formatted timestamps that are kept: lists repeat most of those of the previous walk. */
const FORMATTED_MAX = 50_000;
const formatted = new Map<EpochMs, string>();
/** The simulated hour in which they were formatted. Those of earlier hours are dropped, so that long runs keep few. */
let formattedInHour = Number.NaN;

/** Formats a time as the service's clock showed it, including the clock skew at that time. ISO 8601, UTC. */
export function serviceTimestamp(service: ServiceBackend, at: EpochMs): string {
  const shown = at + clockSkewAt(service.world.faultSchedule, at);
  const known = formatted.get(shown);
  if (known !== undefined) return known;
  const text = new Date(shown).toISOString();
  const hour = Math.floor(service.world.now / HOUR_MS);
  if (formatted.size >= FORMATTED_MAX || hour !== formattedInHour) formatted.clear();
  formattedInHour = hour;
  formatted.set(shown, text);
  return text;
}
