import { isIPv6 } from "node:net";

/** Clients of whom something is remembered. Of more, the one that was not heard of for longest is forgotten. */
const CLIENTS_MAX = 4_096;

/**
 * Who a client is, by its address: of IPv6 the first half, for a single machine has all of the second. An address of
 * IPv4 is the same however it is written.
 */
export function clientOf(address: string | undefined): string {
  if (address === undefined) return "unknown";
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.replace(/%.*$/, "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill("0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}

/** Something for each client, made at first sight. */
export interface ByClient<T> {
  of(client: string): T;
  readonly size: number;
}

/** Nothing of anybody yet. */
export function byClient<T>(make: () => T, clientsMax = CLIENTS_MAX): ByClient<T> {
  const known = new Map<string, T>();
  return {
    get size() {
      return known.size;
    },
    of(client) {
      const value = known.get(client) ?? make();
      // A map keeps the order in which keys came: the first one is the one that was not heard of for longest.
      known.delete(client);
      known.set(client, value);
      const [longest] = known.keys();
      if (known.size > clientsMax && longest !== undefined) known.delete(longest);
      return value;
    },
  };
}
