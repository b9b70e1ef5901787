import { fail, type Result } from "../../base/result.ts";
import type { FaultKind, ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import { type ActiveFault, clockSkewAt } from "../http/faults.ts";
import type { World } from "../network.ts";

/** The nodes in the order of the list at `at`. No report after `seenUntil` is known to the service. */
export type NodeOrder = (at: EpochMs, seenUntil: EpochMs) => readonly SimulatedNode[];

/** What all endpoints share. */
export interface ServiceBackend {
  readonly options: ServiceOptions;
  readonly world: World;
  readonly nodeOrder: NodeOrder;
}

/** A request that was let in, and all that an endpoint needs to answer it. */
export interface EndpointCall {
  readonly service: ServiceBackend;
  /** The path parameter; "" where the path has none. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly body: string;
  /** True time. */
  readonly at: EpochMs;
  readonly activeFaults: readonly ActiveFault[];
}

/** A success. Without a value the reply has no body. */
export interface EndpointSuccess {
  readonly status: number;
  readonly value?: unknown;
}

/** A refusal: its code is for programs, its message says what is wrong, and what would be right. */
export interface EndpointError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** What an endpoint says. */
export type EndpointResult = Result<EndpointSuccess, EndpointError>;

/** A refusal as an outcome. */
export const endpointError = (
  status: number,
  code: string,
  message: string,
): { readonly ok: false; readonly error: EndpointError } => fail({ status, code, message });

/** The first fault of that kind that hits the call. */
export function findFault<K extends FaultKind["kind"]>(
  activeFaults: readonly ActiveFault[],
  kind: K,
): (Extract<FaultKind, { kind: K }> & { readonly sinceMs: EpochMs }) | null {
  for (const { fault, sinceMs } of activeFaults) {
    if (fault.kind === kind) return { ...(fault as Extract<FaultKind, { kind: K }>), sinceMs };
  }
  return null;
}

/** An instant as the service stamped it: by its own clock, which may have been off just then. ISO 8601, UTC. */
export const serviceTimestamp = (service: ServiceBackend, at: EpochMs): string =>
  new Date(at + clockSkewAt(service.world.faultSchedule, at)).toISOString();
