import { withRoom } from "../base/typed-column.ts";
import { HOUR_MS } from "../base/duration.ts";
import type { NodeRecord } from "../model/node.ts";
import type { MonotonicMs } from "../model/time.ts";

/** What the list records of each node usually look like, so that one that changed abruptly stands out. */
export interface Habits {
  /** Takes in a list record. True if the node's own past does not lead to it. */
  list(slot: number, record: NodeRecord, at: MonotonicMs): boolean;
  /** What is known of the slot speaks of another node. */
  forget(slot: number): void;
}

/** A number jumps when it is off its mean by so many of its usual deviations … */
const DEVIATIONS = 5;
/** … and this share of the mean, and something at all: small numbers jump by nature. */
const SHARE_OF_MEAN = 0.3;
const SESSIONS_MIN = 4;
const GIGABYTES_AN_HOUR_MIN = 0.5;
/** Records over which mean and deviation are learned. */
const RECORDS = 16;
/** Before so many, they are not known well enough to call anything a jump. */
const RECORDS_MIN = 6;

/** Cells of a slot: its uptime, and mean and deviation of its sessions and of the rate of its bandwidth. */
const CELLS = 5;
const UPTIME = 0;
const SESSIONS = 1;
const RATE = 3;

/** Knows no node. */
export function createHabits(): Habits {
  /** Records seen, up to {@link RECORDS}. */
  let seen = new Uint8Array(0);
  let cells = new Float32Array(0);
  let bandwidths = new Float64Array(0);
  let listedAt = new Float64Array(0);
  const statuses: NodeRecord["status"][] = [];
  const versions: NodeRecord["version"][] = [];

  function makeRoom(slot: number): void {
    seen = withRoom(seen, slot);
    cells = withRoom(cells, slot * CELLS + CELLS);
    bandwidths = withRoom(bandwidths, slot, Number.NaN);
    listedAt = withRoom(listedAt, slot);
  }

  /** Whether a number is far off its past, of which it then is a part. After a jump the past is another one. */
  function jumps(cell: number, value: number, known: number, least: number): boolean {
    const mean = cells[cell]!;
    const deviation = cells[cell + 1]!;
    const off = Math.abs(value - mean);
    const isJump = known >= RECORDS_MIN && off > DEVIATIONS * deviation + SHARE_OF_MEAN * Math.abs(mean) + least;
    const weight = 1 / Math.min(RECORDS, known + 1);
    cells[cell] = isJump ? value : mean + weight * (value - mean);
    // A jump must not widen what is usual, or the next one would pass. The first value is off nothing.
    if (!isJump && known > 0) cells[cell + 1] = deviation + weight * (off - deviation);
    return isJump;
  }

  return {
    list(slot, record, at) {
      if (slot >= seen.length) makeRoom(slot);
      const known = seen[slot]!;
      const cell = slot * CELLS;
      const { status, version, uptimeHours, activeSessions, bandwidthGb } = record;
      const fell = uptimeHours !== null && uptimeHours < cells[cell + UPTIME]!;
      let isAbrupt = known > 0 && (status !== statuses[slot] || version !== versions[slot] || fell);
      if (activeSessions !== null && jumps(cell + SESSIONS, activeSessions, known, SESSIONS_MIN)) isAbrupt = true;
      const hours = (at - listedAt[slot]!) / HOUR_MS;
      const gained = (bandwidthGb ?? Number.NaN) - bandwidths[slot]!;
      // A count that fell began anew, by a restart, which shows in the uptime.
      if (known > 0 && hours > 0 && gained >= 0) {
        if (jumps(cell + RATE, gained / hours, known - 1, GIGABYTES_AN_HOUR_MIN)) isAbrupt = true;
      }
      statuses[slot] = status;
      versions[slot] = version;
      cells[cell + UPTIME] = uptimeHours ?? cells[cell + UPTIME]!;
      bandwidths[slot] = bandwidthGb ?? Number.NaN;
      listedAt[slot] = at;
      seen[slot] = Math.min(RECORDS, known + 1);
      return isAbrupt;
    },
    forget(slot) {
      if (slot >= seen.length) return;
      seen[slot] = 0;
      cells.fill(0, slot * CELLS, slot * CELLS + CELLS);
    },
  };
}
