import { fail, type Result } from "../../base/result.ts";
import type { FaultKind, ServiceOptions } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { type Strike, skewAt } from "../http/faults.ts";
import type { NodeOrder } from "./node-order.ts";
import type { World } from "../network.ts";

/** What the endpoints stand on. */
export interface Backend {
  readonly options: ServiceOptions;
  readonly world: World;
  readonly nodeOrder: NodeOrder;
}

/** A request that was let in, and all that an endpoint needs to answer it. */
export interface Call {
  readonly service: Backend;
  /** The path parameter; "" where the path has none. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly body: string;
  /** True time. */
  readonly at: EpochMs;
  readonly strikes: readonly Strike[];
}

/** A success. Without a value the reply has no body. */
export interface Answer {
  readonly status: number;
  readonly value?: unknown;
}

/** A refusal: its code is for programs, its message says what is wrong, and what would be right. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** What an endpoint says. */
export type Outcome = Result<Answer, Refusal>;

/** A refusal as an outcome. */
export const refuse = (
  status: number,
  code: string,
  message: string,
): { readonly ok: false; readonly error: Refusal } => fail({ status, code, message });

/** The first fault of that kind that hits the call. */
export function struck<K extends FaultKind["kind"]>(
  strikes: readonly Strike[],
  kind: K,
): (Extract<FaultKind, { kind: K }> & { readonly sinceMs: EpochMs }) | null {
  for (const { fault, sinceMs } of strikes) {
    if (fault.kind === kind) return { ...(fault as Extract<FaultKind, { kind: K }>), sinceMs };
  }
  return null;
}

/** An instant as the service stamped it: by its own clock, which may have been off just then. ISO 8601, UTC. */
export const stamp = (service: Backend, at: EpochMs): string =>
  new Date(at + skewAt(service.world.script, at)).toISOString();
