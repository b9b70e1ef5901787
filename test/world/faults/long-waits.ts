import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import type { RandomChoices } from "../runs/random-choices.ts";
import type { TimedEvent } from "./world-events.ts";

/** Mean time between two of them. */
const LONG_WAIT_INTERVAL_MS: DurationMs = 4 * HOUR_MS;
/** Lists are usually read at least once in this time. */
const FAULT_MS: DurationMs = 3 * MINUTE_MS;

/** Draws lists that the service answers with a Retry-After of minutes, during which the daemon restarts. */
export function longWaits(
  choices: RandomChoices,
  fromMs: DurationMs,
  untilMs: DurationMs,
): readonly { readonly fault: Fault; readonly restart: TimedEvent }[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / LONG_WAIT_INTERVAL_MS).map((afterMs) => {
    const status = choices.pick([429, 503]);
    const retryAfter = choices.pick(["400", "800"]);
    const fault: Fault = {
      afterMs,
      forMs: FAULT_MS,
      match: choices.pick(["GET /v1/nodes?", "GET /v1/sessions?"]),
      fault: { kind: "status", status, retryAfter },
    };
    const atMs = afterMs + choices.ms(FAULT_MS, 2 * FAULT_MS);
    return { fault, restart: { atMs, event: { kind: "restart", downMs: choices.ms(SECOND_MS, 2 * MINUTE_MS) } } };
  });
}
