import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** Maximum number of remembered clients. The least recently used ones are forgotten. */
const REMEMBERED_CLIENTS_MAX = 4_096;

/**
 * Returns the key under which a client is counted: its IPv4 address, or the first 64 bits of its IPv6 address, because
 * one machine may use all addresses with these bits. Returns `unknown` for other texts, which a proxy may forward.
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

/** Removes a port, which some proxies forward, and the prefix of IPv4 in IPv6. */
function plainAddress(address = ""): string {
  const [, host = address] = /^(?:\[(.+)\]|(\d+(?:\.\d+){3}))(?::\d+)?$/.exec(address)?.filter(Boolean) ?? [];
  return host.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Returns whether an address is that of a trusted proxy. */
export type IsTrustedProxy = (address: string | undefined) => boolean;

/** Creates a check from a list of valid IP addresses and networks. */
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

/** Creates a function that returns the value of a client, which `create` creates on first use. */
export function createPerClient<T>(create: () => T, clientsMax = REMEMBERED_CLIENTS_MAX): (client: string) => T {
  const known = new Map<string, T>();
  return (client) => {
    const value = known.get(client) ?? create();
    // A map keeps insertion order, so the first key is the least recently used one.
    known.delete(client);
    known.set(client, value);
    const [leastRecent] = known.keys();
    if (known.size > clientsMax && leastRecent !== undefined) known.delete(leastRecent);
    return value;
  };
}
