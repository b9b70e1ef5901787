import { HOUR_MS } from "../base/duration.ts";
import { growColumn } from "../base/typed-column.ts";
import type { NodeRecord } from "../model/node.ts";
import type { MonotonicMs } from "../model/time.ts";

/** What the list records of each node usually look like, so that one that changed abruptly stands out. */
export interface ListBaselines {
  /** Takes in a list record. True if the node's own past does not lead to it. */
  recordAndCheck(slot: number, record: NodeRecord, at: MonotonicMs): boolean;
  /** What is known of the slot speaks of another node. */
  forgetNode(slot: number): void;
}

/** A number jumps when it is off its mean by so many of its usual deviations … */
const DEVIATIONS = 5;
/** … and this share of the mean, and something at all: small numbers jump by nature. */
const SHARE_OF_MEAN = 0.3;
const SESSIONS_MIN = 4;
const GIGABYTES_AN_HOUR_MIN = 0.5;
/** Records over which mean and deviation are learned. */
const WEIGHT_RECORDS = 16;
/** Before so many, they are not known well enough to call anything a jump. */
const RECORDS_MIN = 6;

/** Cells of a slot: its uptime, and mean and deviation of its sessions and of the rate of its bandwidth. */
const BASELINES_PER_NODE = 5;
const UPTIME = 0;
const SESSIONS = 1;
const RATE = 3;

/** Knows no node. */
export function createListBaselines(): ListBaselines {
  /** Records seen, up to {@link WEIGHT_RECORDS}. */
  let seen = new Uint8Array(0);
  let baselines = new Float32Array(0);
  let bandwidths = new Float64Array(0);
  let listedAt = new Float64Array(0);
  const statuses: NodeRecord["status"][] = [];
  const versions: NodeRecord["version"][] = [];

  function makeRoom(slot: number): void {
    seen = growColumn(seen, slot);
    baselines = growColumn(baselines, slot * BASELINES_PER_NODE + BASELINES_PER_NODE);
    bandwidths = growColumn(bandwidths, slot, Number.NaN);
    listedAt = growColumn(listedAt, slot);
  }

  /** Whether a number is far off its past, of which it then is a part. After a jump the past is another one. */
  function deviates(cell: number, value: number, known: number, least: number): boolean {
    const mean = baselines[cell]!;
    const deviation = baselines[cell + 1]!;
    const off = Math.abs(value - mean);
    const isDeviation = known >= RECORDS_MIN && off > DEVIATIONS * deviation + SHARE_OF_MEAN * Math.abs(mean) + least;
    const weight = 1 / Math.min(WEIGHT_RECORDS, known + 1);
    baselines[cell] = isDeviation ? value : mean + weight * (value - mean);
    // A jump must not widen what is usual, or the next one would pass. The first value is off nothing.
    if (!isDeviation && known > 0) baselines[cell + 1] = deviation + weight * (off - deviation);
    return isDeviation;
  }

  return {
    recordAndCheck(slot, record, at) {
      if (slot >= seen.length) makeRoom(slot);
      const known = seen[slot]!;
      const cell = slot * BASELINES_PER_NODE;
      const { status, version, uptimeHours, activeSessions, bandwidthGb } = record;
      const uptimeFell = uptimeHours !== null && uptimeHours < baselines[cell + UPTIME]!;
      let isAbrupt = known > 0 && (status !== statuses[slot] || version !== versions[slot] || uptimeFell);
      if (activeSessions !== null && deviates(cell + SESSIONS, activeSessions, known, SESSIONS_MIN)) isAbrupt = true;
      const hours = (at - listedAt[slot]!) / HOUR_MS;
      const bandwidthGain = (bandwidthGb ?? Number.NaN) - bandwidths[slot]!;
      // A count that fell began anew, by a restart, which shows in the uptime.
      if (known > 0 && hours > 0 && bandwidthGain >= 0) {
        if (deviates(cell + RATE, bandwidthGain / hours, known - 1, GIGABYTES_AN_HOUR_MIN)) isAbrupt = true;
      }
      statuses[slot] = status;
      versions[slot] = version;
      baselines[cell + UPTIME] = uptimeHours ?? baselines[cell + UPTIME]!;
      bandwidths[slot] = bandwidthGb ?? Number.NaN;
      listedAt[slot] = at;
      seen[slot] = Math.min(WEIGHT_RECORDS, known + 1);
      return isAbrupt;
    },
    forgetNode(slot) {
      if (slot >= seen.length) return;
      seen[slot] = 0;
      baselines.fill(0, slot * BASELINES_PER_NODE, slot * BASELINES_PER_NODE + BASELINES_PER_NODE);
    },
  };
}
