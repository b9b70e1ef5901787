import { NODE_STATUSES } from "../model/node.ts";
import type { Fleet } from "../model/snapshot.ts";

const numberNames = [
  "lastSeenMs",
  "uptimeHours",
  "activeSessions",
  "bandwidthGb",
  "cpuUsage",
  "memoryUsage",
  "diskUsage",
  "createdAtMs",
  "updatedAtMs",
  "listedAt",
  "detailedAt",
  "detailedAtEpochMs",
] as const;
type NumberName = (typeof numberNames)[number];
const textNames = ["ids", "names", "ipAddresses", "versions"] as const;
type TextName = (typeof textNames)[number];
const usageNames = ["cpuUsage", "memoryUsage", "diskUsage"] as const;

/** Shortest column; columns double from there, so that growing costs a constant a node. */
const SLOTS_MIN = 64;
const UNKNOWN_STATUS = NODE_STATUSES.indexOf("unknown");

type Numeric = Float64Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** A column that knows whether it changed since it was last copied, so that a copy costs only what changed. */
interface Column<A> {
  values: A;
  sharedLength: A | null;
}

/** The writable columns behind a {@link Fleet}. */
export type Columns = ReturnType<typeof createColumns>;

/** Columns without a slot. */
export function createColumns() {
  let slots = 0;
  const number = Object.fromEntries(numberNames.map((name) => [name, column(new Float64Array(0))])) as Record<
    NumberName,
    Column<Float64Array<ArrayBuffer>>
  >;
  const text = Object.fromEntries(textNames.map((name) => [name, column([] as string[])])) as Record<
    TextName,
    Column<string[]>
  >;
  const location = column(new Uint32Array(0));
  const status = column(new Uint8Array(0));

  const texts = {
    get: (name: TextName, slot: number): string => text[name].values[slot]!,
    set(name: TextName, slot: number, value: string): void {
      if (text[name].values[slot] === value) return;
      text[name].values[slot] = value;
      text[name].sharedLength = null;
    },
  };
  const numbers = {
    get: (name: NumberName, slot: number): number => number[name].values[slot]!,
    /** Null is kept as NaN: missing. */
    set(name: NumberName, slot: number, value: number | null): void {
      write(number[name], slot, value ?? Number.NaN);
    },
  };

  return {
    texts,
    numbers,
    setPlace: (slot: number, index: number) => write(location, slot, index),
    setStatus: (slot: number, index: number) => write(status, slot, index),
    /** One slot more; returns it. */
    grow(): number {
      const slot = slots++;
      for (const name of numberNames) growColumn(number[name], slots, Float64Array);
      growColumn(location, slots, Uint32Array);
      growColumn(status, slots, Uint8Array);
      return slot;
    },
    /** Makes the slot that of `id`, with everything else missing; "" makes it empty. */
    clear(slot: number, id: string): void {
      for (const name of textNames) texts.set(name, slot, name === "ids" ? id : "");
      for (const name of numberNames) numbers.set(name, slot, null);
      write(location, slot, 0);
      write(status, slot, UNKNOWN_STATUS);
    },
    forgetUsage(): void {
      for (const name of usageNames) {
        number[name].values.fill(Number.NaN);
        number[name].sharedLength = null;
      }
    },
    /** The places that some node stands in. */
    occupiedPlaces(): Set<number> {
      const occupied = new Set<number>();
      for (let slot = 0; slot < slots; slot++) if (text.ids.values[slot] !== "") occupied.add(location.values[slot]!);
      return occupied;
    },
    /** Renumbers the places; null: nothing changes. An empty slot's place means nothing, and becomes 0. */
    movePlaces(renumbered: readonly number[] | null): void {
      if (renumbered === null) return;
      for (let slot = 0; slot < slots; slot++) {
        write(location, slot, renumbered[location.values[slot]!] ?? 0);
      }
    },
    copy(rest: Pick<Fleet, "count" | "locations" | "usageKnown" | "settledAt" | "walkedAt" | "lastWalk">): Fleet {
      return {
        slots,
        ...rest,
        ...(Object.fromEntries(textNames.map((name) => [name, copyText(text[name])])) as Record<TextName, string[]>),
        ...(Object.fromEntries(numberNames.map((name) => [name, copyNumbers(number[name], slots)])) as Record<
          NumberName,
          Float64Array
        >),
        locationIndex: copyNumbers(location, slots),
        status: copyNumbers(status, slots),
      };
    },
  };
}

const column = <A>(values: A): Column<A> => ({ values, sharedLength: null });

function write(writeValue: Column<Numeric>, slot: number, value: number): void {
  if (Object.is(writeValue.values[slot], value)) return;
  writeValue.values[slot] = value;
  writeValue.sharedLength = null;
}

function growColumn<A extends Numeric>(grow: Column<A>, length: number, make: new (length: number) => A): void {
  grow.sharedLength = null;
  if (length <= grow.values.length) return;
  const wider = new make(Math.max(SLOTS_MIN, 2 * grow.values.length));
  wider.set(grow.values);
  grow.values = wider;
}

function copyNumbers<A extends Numeric>(from: Column<A>, slots: number): A {
  from.sharedLength ??= from.values.slice(0, slots) as A;
  return from.sharedLength;
}

function copyText(from: Column<string[]>): string[] {
  from.sharedLength ??= from.values.slice();
  return from.sharedLength;
}
