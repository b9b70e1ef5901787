import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { fail, type Result } from "../../base/result.ts";
import type { FaultKind, ServiceOptions } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { type ActiveFault, clockSkewAt } from "../http/faults.ts";
import type { Network } from "../network.ts";

/** State that all endpoints share. */
export interface ServiceBackend {
  readonly options: ServiceOptions;
  readonly network: Network;
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
interface EndpointSuccess {
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

/** Returns the first active fault of a kind, or null if there is none. */
export function findFault<K extends FaultKind["kind"]>(
  activeFaults: readonly ActiveFault[],
  kind: K,
): (Extract<FaultKind, { kind: K }> & { readonly sinceMs: EpochMs }) | null {
  for (const { fault, sinceMs } of activeFaults) {
    if (fault.kind === kind) return { ...(fault as Extract<FaultKind, { kind: K }>), sinceMs };
  }
  return null;
}

/** Formats a time as the service's clock showed it, including the clock skew at that time. ISO 8601, UTC. */
export function serviceTimestamp({ network, options }: ServiceBackend, at: EpochMs): string {
  const shownAt = at + clockSkewAt(network.faultSchedule, at);
  const text = formatTimestamp(shownAt);
  switch (options.timestamps) {
    case "milliseconds":
      return text;
    case "seconds":
      return text.replace(/\.\d+/, "");
    case "offset":
      return text.replace("Z", "000+00:00");
    case "other_zone":
      return formatTimestamp(shownAt + OTHER_ZONE_MS).replace("Z", "+05:30");
    case "no_zone":
      return text.replace("Z", "");
    default:
      return options.timestamps satisfies never;
  }
}

/** Offset of the zone `+05:30`. */
const OTHER_ZONE_MS: DurationMs = 5.5 * HOUR_MS;
/** Maximum number of minutes whose text is kept. The timestamps of a list share few minutes. */
const MINUTES_MAX = 2_000;
/** The first 17 characters of a timestamp, by minute. */
const minuteTexts = new Map<number, string>();

/** Does the same as `toISOString`, in a third of the time. */
function formatTimestamp(at: EpochMs): string {
  const minute = Math.floor(at / MINUTE_MS);
  let text = minuteTexts.get(minute);
  if (text === undefined) {
    if (minuteTexts.size >= MINUTES_MAX) minuteTexts.clear();
    text = new Date(minute * MINUTE_MS).toISOString().slice(0, 17);
    minuteTexts.set(minute, text);
  }
  const ms = Math.floor(at - minute * MINUTE_MS);
  const [seconds, millis] = [Math.floor(ms / SECOND_MS), ms % SECOND_MS];
  return `${text}${String(100 + seconds).slice(1)}.${String(1_000 + millis).slice(1)}Z`;
}
