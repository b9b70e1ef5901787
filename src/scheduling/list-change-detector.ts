import { HOUR_MS } from "../base/duration.ts";
import { growColumn } from "../base/typed-column.ts";
import type { NodeRecord } from "../model/node.ts";
import type { MonotonicMs } from "../model/time.ts";

/**
 * A value is abnormal if it differs from the mean by this many mean deviations, plus this share of the mean, plus a
 * minimum.
 */
const DEVIATIONS = 5;
const SHARE_OF_MEAN = 0.3;
const SESSIONS_MIN = 4;
const GIGABYTES_PER_HOUR_MIN = 0.5;
/** Number of records in the mean and the deviation. */
const WEIGHT_RECORDS = 16;
/** Number of records after which the mean and the deviation are known well enough. */
const RECORDS_MIN = 6;

/**
 * Number of cells of a slot: uptime, then mean and deviation of the session count, then those of the bandwidth rate.
 */
const CELLS_PER_NODE = 5;
const UPTIME = 0;
const SESSIONS = 1;
const RATE = 3;

/** Detects abrupt changes in the list records of each node, compared with the earlier ones. */
export class ListChangeDetector {
  /** Number of records, up to {@link WEIGHT_RECORDS}. */
  #records = new Uint8Array(0);
  #cells = new Float32Array(0);
  #bandwidths = new Float64Array(0);
  #listedAt = new Float64Array(0);
  readonly #statuses: NodeRecord["status"][] = [];
  readonly #versions: NodeRecord["version"][] = [];

  /** Records a list record. Returns whether it changed abruptly. */
  recordAndCheck(slot: number, record: NodeRecord, at: MonotonicMs): boolean {
    if (slot >= this.#records.length) this.#grow(slot);
    const known = this.#records[slot]!;
    const cell = slot * CELLS_PER_NODE;
    const { status, version, uptimeHours, activeSessions, bandwidthGb } = record;
    // The uptime of the last record was rounded when it was stored.
    const uptimeFell = uptimeHours !== null && Math.fround(uptimeHours) < this.#cells[cell + UPTIME]!;
    const isOther = status !== this.#statuses[slot] || version !== this.#versions[slot];
    let isAbrupt = known > 0 && (isOther || uptimeFell);
    if (activeSessions !== null && this.#isAbnormal(cell + SESSIONS, activeSessions, known, SESSIONS_MIN)) {
      isAbrupt = true;
    }
    const hours = (at - this.#listedAt[slot]!) / HOUR_MS;
    const bandwidth = bandwidthGb ?? Number.NaN;
    const gain = bandwidth - this.#bandwidths[slot]!;
    // A bandwidth that fell was reset by a restart, which the uptime shows.
    if (known > 0 && hours > 0 && gain >= 0) {
      if (this.#isAbnormal(cell + RATE, gain / hours, known - 1, GIGABYTES_PER_HOUR_MIN)) isAbrupt = true;
    }
    this.#statuses[slot] = status;
    this.#versions[slot] = version;
    this.#cells[cell + UPTIME] = uptimeHours ?? this.#cells[cell + UPTIME]!;
    this.#bandwidths[slot] = bandwidth;
    this.#listedAt[slot] = at;
    this.#records[slot] = Math.min(WEIGHT_RECORDS, known + 1);
    return isAbrupt;
  }

  /** Forgets a slot, which may be used for another node. */
  forgetNode(slot: number): void {
    if (slot >= this.#records.length) return;
    this.#records[slot] = 0;
    this.#cells.fill(0, slot * CELLS_PER_NODE, (slot + 1) * CELLS_PER_NODE);
  }

  #grow(slot: number): void {
    this.#records = growColumn(this.#records, slot);
    // The records may have got room for more slots than this one.
    this.#cells = growColumn(this.#cells, this.#records.length * CELLS_PER_NODE - 1);
    this.#bandwidths = growColumn(this.#bandwidths, slot, Number.NaN);
    this.#listedAt = growColumn(this.#listedAt, slot);
  }

  /**
   * Returns whether a value is abnormal. If so, it becomes the new mean; otherwise it is added to mean and deviation.
   */
  #isAbnormal(cell: number, value: number, known: number, minimum: number): boolean {
    const mean = this.#cells[cell]!;
    const deviation = this.#cells[cell + 1]!;
    const off = Math.abs(value - mean);
    const isAbnormal = known >= RECORDS_MIN && off > DEVIATIONS * deviation + SHARE_OF_MEAN * Math.abs(mean) + minimum;
    const weight = 1 / Math.min(WEIGHT_RECORDS, known + 1);
    this.#cells[cell] = isAbnormal ? value : mean + weight * (value - mean);
    // An abnormal value must not increase the deviation and hide the next one. The first value has no deviation.
    if (!isAbnormal && known > 0) this.#cells[cell + 1] = deviation + weight * (off - deviation);
    return isAbnormal;
  }
}
