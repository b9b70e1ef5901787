import type { ApiClient } from "../../../src/api-client/client.ts";
import type { Call } from "../../../src/api-client/endpoints.ts";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { Clock } from "../../../src/model/ports.ts";
import type { Lane } from "../../../src/rate-limit/limits.ts";

/** A client that never runs out of calls to make. */
export interface SaturatingLoad {
  /** Stops making calls. Calls under way continue. */
  stop(): void;
  /** Moments at which answers came, of GETs that succeeded or failed. */
  readonly answers: readonly { readonly at: number; readonly error: string | null }[];
}

/** Asks for `call` again and again, `loops` at a time. */
export function startSaturatingLoad(
  client: ApiClient,
  clock: Clock,
  call: Call,
  loops = 8,
  lane: Lane = "detail",
): SaturatingLoad {
  const answers: { at: number; error: string | null }[] = [];
  const ends = new AbortController();
  const loop = async (): Promise<void> => {
    while (!ends.signal.aborted) {
      const answer = await client.get(call, lane, ends.signal);
      answers.push({ at: clock.monotonic(), error: answer.ok ? null : answer.error.kind });
    }
  };
  for (let index = 0; index < loops; index++) void loop();
  return { stop: () => ends.abort(), answers };
}

/** The longest time between `from` and `to` in which nothing happened, in minutes. */
export function longestGap(moments: readonly number[], from: number, to: number): number {
  const within = [from, ...moments.filter((at) => at >= from && at <= to), to];
  return Math.max(...within.slice(1).map((at, index) => at - within[index]!)) / MINUTE_MS;
}
