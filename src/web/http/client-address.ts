import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** Clients of whom something is remembered. Of more, the one that was not heard of for longest is forgotten. */
const REMEMBERED_CLIENTS_MAX = 4_096;

/**
 * Returns the name under which a client is counted: its address, and of an IPv6 address the first half, because a single
 * machine may have all of the second. IPv4 is the same however it is written. What is no address is `unknown`: a proxy
 * may forward anything.
 */
export function clientKey(address: string | undefined): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return isIPv4(plain) ? plain : "unknown";
  const [head = "", tail] = plain.replace(/%.*$/, "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill("0");
  return [...groups, ...zeros, ...rest].slice(0, 4).join(":");
}

/** An address without a port, as some proxies forward it, and without the prefix of IPv4 in IPv6. */
function plainAddress(address = ""): string {
  const [, host = address] = /^(?:\[(.+)\]|(\d+(?:\.\d+){3}))(?::\d+)?$/.exec(address)?.filter(Boolean) ?? [];
  return host.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Whether an address is that of a trusted proxy. */
export type IsTrustedProxy = (address: string | undefined) => boolean;

/** Trusts the proxies of a list of IP addresses and networks, which must be valid. */
export function createTrustedProxyCheck(networks: readonly string[]): IsTrustedProxy {
  const trusted = new BlockList();
  const familyOf = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4");
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    if (prefix === undefined) trusted.addAddress(address, familyOf(address));
    else trusted.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (address) => {
    const plain = plainAddress(address);
    return isIP(plain) > 0 && trusted.check(plain, familyOf(plain));
  };
}

/** Something for each client, made at first sight. */
export interface PerClient<T> {
  get(client: string): T;
  readonly size: number;
}

/** Creates an empty map of clients. */
export function createPerClient<T>(create: () => T, clientsMax = REMEMBERED_CLIENTS_MAX): PerClient<T> {
  const known = new Map<string, T>();
  return {
    get size() {
      return known.size;
    },
    get(client) {
      const value = known.get(client) ?? create();
      // A map keeps the order in which keys came: the first one is the one that was not heard of for longest.
      known.delete(client);
      known.set(client, value);
      const [leastRecent] = known.keys();
      if (known.size > clientsMax && leastRecent !== undefined) known.delete(leastRecent);
      return value;
    },
  };
}
