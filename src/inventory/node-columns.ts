import { byName } from "../base/by-name.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { WritableNumberColumn } from "../base/number-column.ts";
import { growColumn, type TypedColumn } from "../base/typed-column.ts";
import {
  DETAIL_NUMBER_NAMES,
  LISTED_NUMBER_NAMES,
  LISTED_TEXT_NAMES,
  NODE_STATUSES,
  type NodeId,
  type NodeRecord,
} from "../model/node.ts";
import { USAGES } from "../model/policy/policy.ts";
import type { Fleet, TextColumn } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";

const NUMBER_COLUMNS = [
  ...LISTED_NUMBER_NAMES,
  ...DETAIL_NUMBER_NAMES,
  "listedAt",
  "otherStatusAt",
  "detailedAt",
  "detailedAtEpochMs",
  "detailLastSeenMs",
] as const;
type NumberColumnName = (typeof NUMBER_COLUMNS)[number];

/** The text fields that have a column of their own. */
export const TEXT_COLUMNS = LISTED_TEXT_NAMES.filter(
  (name): name is TextColumn => name !== "country" && name !== "region",
);

const UNKNOWN_STATUS = NODE_STATUSES.indexOf("unknown");
const OFFLINE_STATUS = NODE_STATUSES.indexOf("offline");

/** A record whose last_seen is earlier by more than this is an older one. Some services round the times in a list. */
const LAST_SEEN_TOLERANCE_MS: DurationMs = 2 * SECOND_MS;
/**
 * For this long after a record, an older record of the list, for example from a cache, is ignored. After that, it is
 * trusted, since the service's clock may have been set back.
 */
export const OLDER_RECORD_MS_MAX: DurationMs = 2 * MINUTE_MS;

/** Called with a record of the list whose status contradicts that of others, and how. */
export type OnContradiction = (record: NodeRecord, how: "older_record" | "contradicting_status") => void;

/** A column, and its last copy if the column has not changed since, so that a snapshot copies only what changed. */
interface Column<A> {
  values: A;
  shared: A | null;
}

/** The writable columns behind a {@link Fleet}. */
export class NodeColumns {
  #slots = 0;
  readonly #numbers = byName(NUMBER_COLUMNS, () => new WritableNumberColumn());
  readonly #texts = byName(["ids", ...TEXT_COLUMNS] as const, () => column<string[]>([]));
  /** The columns that every record of the list sets, kept here to avoid a lookup by name for each value. */
  readonly #listedNumbers = LISTED_NUMBER_NAMES.map((name) => ({ name, column: this.#numbers[name] }));
  readonly #listedTexts = TEXT_COLUMNS.map((name) => ({ name, column: this.#texts[name] }));
  readonly #locationIndex = column(new Uint32Array(0));
  readonly #status = column(new Uint8Array(0));
  /** 1 if the node is online, but has not been seen since a record that stated that it was offline. */
  #onlineUnseen = new Uint8Array(0);

  id(slot: number): NodeId {
    return this.#texts.ids.values[slot]!;
  }

  number(name: NumberColumnName, slot: number): number {
    return this.#numbers[name].at(slot);
  }

  /** Sets a number. Null, which means missing, is stored as NaN. */
  setNumber(name: NumberColumnName, slot: number, value: number | null): void {
    this.#numbers[name].set(slot, value ?? Number.NaN);
  }

  setText(name: "ids" | TextColumn, slot: number, value: string): void {
    write(this.#texts[name], slot, value);
  }

  /**
   * Returns whether the record was observed at `at` before the stored one, or is older by its last_seen and was observed
   * at most `ignoredMs` later.
   */
  isOutdated(slot: number, record: NodeRecord, at: MonotonicMs, ignoredMs: DurationMs): boolean {
    const ageMs = at - this.number("listedAt", slot);
    const lastSeenMs = record.lastSeenMs ?? Number.NaN;
    const isOlder = lastSeenMs < this.number("lastSeenMs", slot) - LAST_SEEN_TOLERANCE_MS;
    return ageMs < 0 || (isOlder && ageMs <= ignoredMs);
  }

  /** Returns whether an outdated record was observed at `at` after the stored one, and states another status. */
  contradicts(slot: number, record: NodeRecord, at: MonotonicMs): boolean {
    return at >= this.number("listedAt", slot) && !this.#hasStatus(slot, record);
  }

  /**
   * Returns whether a record contradicts the stored one: the stored one states that an offline node is online again,
   * this one that it is offline, and last_seen has stayed the same throughout.
   */
  isOfflineAgain(slot: number, record: NodeRecord): boolean {
    return this.#onlineUnseen[slot] === 1 && record.status === "offline" && this.#isUnseen(slot, record);
  }

  /** Returns whether the record's last_seen shows that the node has not been seen since the stored record. */
  #isUnseen(slot: number, { lastSeenMs }: NodeRecord): boolean {
    return (lastSeenMs ?? Number.NaN) <= this.number("lastSeenMs", slot) + LAST_SEEN_TOLERANCE_MS;
  }

  /** Records that an outdated record was observed at `at`. Only the time of another known status is stored. */
  recordOutdated(slot: number, record: NodeRecord, at: MonotonicMs): void {
    if (record.status === "unknown" || this.#hasStatus(slot, record)) return;
    // Timers may have counted up to the stored record, so a record that arrives late counts as one that follows it.
    this.#recordOtherStatus(slot, Math.max(at, this.number("listedAt", slot) + 1));
  }

  #recordOtherStatus(slot: number, at: MonotonicMs): void {
    if (!(this.number("otherStatusAt", slot) > at)) this.setNumber("otherStatusAt", slot, at);
  }

  #hasStatus(slot: number, { status }: NodeRecord): boolean {
    return NODE_STATUSES[this.#status.values[slot]!] === status;
  }

  /** Sets the fields of the list as observed at `at`, except the location. */
  setListed(slot: number, record: NodeRecord, at: MonotonicMs): void {
    if (!this.#hasStatus(slot, record) && this.#status.values[slot] !== UNKNOWN_STATUS)
      this.#recordOtherStatus(slot, this.number("listedAt", slot));
    const isOnline = record.status === "online";
    const wasUnseen = this.#status.values[slot] === OFFLINE_STATUS || this.#onlineUnseen[slot] === 1;
    this.#onlineUnseen[slot] = Number(isOnline && wasUnseen && this.#isUnseen(slot, record));
    write(this.#status, slot, NODE_STATUSES.indexOf(record.status));
    this.setNumber("listedAt", slot, at);
    for (const { name, column } of this.#listedTexts) write(column, slot, record[name] ?? "");
    for (const { name, column } of this.#listedNumbers) column.set(slot, record[name] ?? Number.NaN);
  }

  location(slot: number): number {
    return this.#locationIndex.values[slot]!;
  }

  setLocation(slot: number, index: number): void {
    write(this.#locationIndex, slot, index);
  }

  /** Adds a slot and returns it. */
  grow(): number {
    const slot = this.#slots++;
    for (const numbers of Object.values(this.#numbers)) numbers.grow();
    this.#onlineUnseen = growColumn(this.#onlineUnseen, slot);
    for (const column of [this.#locationIndex, this.#status] as Column<TypedColumn>[]) {
      column.values = growColumn(column.values, slot);
      column.shared = null;
    }
    return slot;
  }

  /** Assigns the slot to `id`, with all other fields missing. An empty `id` frees the slot. */
  clear(slot: number, id: NodeId): void {
    this.setText("ids", slot, id);
    for (const name of TEXT_COLUMNS) this.setText(name, slot, "");
    for (const name of NUMBER_COLUMNS) this.setNumber(name, slot, null);
    this.setLocation(slot, 0);
    write(this.#status, slot, UNKNOWN_STATUS);
    this.#onlineUnseen[slot] = 0;
  }

  /** Sets all usages to missing. */
  clearUsage(): void {
    for (const name of USAGES) this.#numbers[name].clear();
  }

  /** Returns the numbers of the locations that have a node. */
  occupiedLocations(): Set<number> {
    const occupied = new Set<number>();
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.id(slot) !== "") occupied.add(this.#locationIndex.values[slot]!);
    }
    return occupied;
  }

  /** Returns how many nodes have a location with this number or a higher one. */
  countFromLocation(first: number): number {
    let nodes = 0;
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#locationIndex.values[slot]! >= first && this.id(slot) !== "") nodes++;
    }
    return nodes;
  }

  /** Renumbers the locations. Empty slots get 0. Null changes nothing. */
  renumberLocations(renumbered: readonly number[] | null): void {
    if (renumbered === null) return;
    for (let slot = 0; slot < this.#slots; slot++) {
      this.setLocation(slot, renumbered[this.#locationIndex.values[slot]!] ?? 0);
    }
  }

  /** Returns an immutable copy of the columns together with `rest`. */
  copy(
    rest: Pick<Fleet, "count" | "locations" | "usageKnown" | "settledAt" | "settledFrom" | "walkedAt" | "lastWalk">,
  ): Fleet {
    return {
      slots: this.#slots,
      ...rest,
      ...mapColumns(this.#texts, (texts) => copyOf(texts, this.#slots)),
      ...mapColumns(this.#numbers, (numbers) => numbers.copy()),
      locationIndex: copyOf(this.#locationIndex, this.#slots),
      status: copyOf(this.#status, this.#slots),
    };
  }
}

const column = <A>(values: A): Column<A> => ({ values, shared: null });

const mapColumns = <Name extends string, C, Copy>(columns: Record<Name, C>, copy: (from: C) => Copy) =>
  Object.fromEntries(Object.entries<C>(columns).map(([name, from]) => [name, copy(from)])) as Record<Name, Copy>;

function write<V>(target: Column<{ [slot: number]: V }>, slot: number, value: V): void {
  if (target.values[slot] === value) return;
  target.values[slot] = value;
  target.shared = null;
}

function copyOf<A extends TypedColumn | string[]>(from: Column<A>, slots: number): A {
  from.shared ??= from.values.slice(0, slots) as A;
  return from.shared;
}
