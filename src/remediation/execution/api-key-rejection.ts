import { HOUR_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import type { Ward } from "../context.ts";

/** The service refuses our API key for actions. */
export interface KeyRefusal {
  /** The service's last refusal. */
  readonly message: string;
  /** When the first action was refused. */
  readonly since: EpochMs;
  /** When an action was refused last. */
  readonly refusedAt: EpochMs;
}

const FACT = "warden.credentials";
/** After a refusal every action is held so long; then one is tried: the key may have been replaced at the service. */
const HOLD_MS = HOUR_MS / 4;
/** Without another refusal for so long no action was wanted: the refusal is over, as far as is known. */
const FORGOTTEN_MS = 2 * HOUR_MS;

/** Returns the refusal that still counts; null: the key is accepted, as far as is known. It survives restarts. */
export function keyRefusal({ books }: Ward): KeyRefusal | null {
  const text = books.casebook.fact(FACT);
  const refusal = text === null ? null : (JSON.parse(text) as KeyRefusal);
  return refusal === null || books.now() - refusal.refusedAt >= FORGOTTEN_MS ? null : refusal;
}

/** Records that the service refused the key for an action (401 or 403), and holds all actions for a while. */
export function keyRefused(ward: Ward, message: string): void {
  const { books, clock } = ward;
  const refusedAt = books.now();
  const refusal: KeyRefusal = { message, since: keyRefusal(ward)?.since ?? refusedAt, refusedAt };
  ward.credentials = { message, until: clock.monotonic() + HOLD_MS };
  books.record([{ kind: "fact", key: FACT, value: JSON.stringify(refusal) }]);
}

/** Records that the service accepted the key for an action. */
export function keyAccepted(ward: Ward): void {
  ward.credentials = null;
  if (ward.books.casebook.fact(FACT) !== null) ward.books.record([{ kind: "fact", key: FACT, value: null }]);
}
