import { growColumn, type TypedColumn } from "../base/typed-column.ts";
import { DETAIL_NUMBER_NAMES, LISTED_NUMBER_NAMES, NODE_STATUSES } from "../model/node.ts";
import { USAGES } from "../model/policy/policy.ts";
import type { Fleet } from "../model/snapshot.ts";

const numberNames = [
  ...LISTED_NUMBER_NAMES,
  ...DETAIL_NUMBER_NAMES,
  "listedAt",
  "detailedAt",
  "detailedAtEpochMs",
] as const;
type NumberName = (typeof numberNames)[number];
const textNames = ["ids", "names", "ipAddresses", "versions"] as const;
type TextName = (typeof textNames)[number];

const UNKNOWN_STATUS = NODE_STATUSES.indexOf("unknown");

/** A column, and its last copy for as long as nothing has changed since: a snapshot copies only what changed. */
interface Column<A> {
  values: A;
  shared: A | null;
}

/** The writable columns behind a {@link Fleet}. */
export type Columns = ReturnType<typeof createColumns>;

/** Creates columns without slots. */
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
      text[name].shared = null;
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
    setLocation: (slot: number, index: number) => write(location, slot, index),
    setStatus: (slot: number, index: number) => write(status, slot, index),
    /** Adds a slot and returns it. */
    grow(): number {
      const slot = slots++;
      for (const each of [...Object.values(number), location, status] as Column<TypedColumn>[]) {
        each.values = growColumn(each.values, slot);
        each.shared = null;
      }
      return slot;
    },
    /** Assigns the slot to `id`, with all other fields missing; "" frees the slot. */
    clear(slot: number, id: string): void {
      for (const name of textNames) texts.set(name, slot, name === "ids" ? id : "");
      for (const name of numberNames) numbers.set(name, slot, null);
      write(location, slot, 0);
      write(status, slot, UNKNOWN_STATUS);
    },
    forgetUsage(): void {
      for (const name of USAGES) {
        number[name].values.fill(Number.NaN);
        number[name].shared = null;
      }
    },
    /** Numbers of the locations that have a node. */
    occupiedLocations(): Set<number> {
      const occupied = new Set<number>();
      for (let slot = 0; slot < slots; slot++) if (text.ids.values[slot] !== "") occupied.add(location.values[slot]!);
      return occupied;
    },
    /** Renumbers the locations; null: nothing changes. Empty slots get 0. */
    renumberLocations(renumbered: readonly number[] | null): void {
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

const column = <A>(values: A): Column<A> => ({ values, shared: null });

function write(target: Column<TypedColumn>, slot: number, value: number): void {
  if (Object.is(target.values[slot], value)) return;
  target.values[slot] = value;
  target.shared = null;
}

function copyNumbers<A extends TypedColumn>(from: Column<A>, slots: number): A {
  from.shared ??= from.values.slice(0, slots) as A;
  return from.shared;
}

function copyText(from: Column<string[]>): string[] {
  from.shared ??= from.values.slice();
  return from.shared;
}
