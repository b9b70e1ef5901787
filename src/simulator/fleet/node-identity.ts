import { DAY_MS } from "../../base/duration.ts";
import { hash, hashUnit, scramble, type Uint32, unscramble, weightedChoice } from "../hash.ts";
import { type NodeSite, SITES } from "./locations.ts";

/** Software releases, newest first. Maintenance upgrades a node to the first. */
export const VERSIONS = [
  { version: "2.14.3", weight: 55 },
  { version: "2.14.1", weight: 25 },
  { version: "2.13.9", weight: 15 },
  { version: "2.11.4", weight: 5 },
] as const;

/** Share of nodes whose name starts with `vip-`, for policies that protect such nodes. */
const VIP_SHARE = 0.01;
const NODE_AGE_MS_MAX = 700 * DAY_MS;
/**
 * Number of addresses in 198.18.0.0/15, which is reserved for benchmarks (RFC 2544). Further nodes are in 10.0.0.0/8.
 */
const BENCHMARK_ADDRESSES = 131_072;

/** Hash keys that make the draws for different properties independent. */
const FACT_KEYS = { site: 1, version: 2, age: 3, vip: 4 } as const;

const chooseSite = weightedChoice(SITES);
const chooseVersion = weightedChoice(VERSIONS);

/** The constant properties of a node. */
interface NodeIdentity {
  readonly name: string;
  readonly site: NodeSite;
  readonly ipAddress: string;
  /** Age at the start of the simulation. */
  readonly ageMs: number;
}

/**
 * The four hexadecimal digits of each 16-bit number. They are precomputed because ids are formatted for every record of
 * every list.
 */
const HEX_OF_HALF: readonly string[] = Array.from({ length: 65_536 }, (_, half) => half.toString(16).padStart(4, "0"));

const hex = (word: Uint32): string => HEX_OF_HALF[word >>> 16]! + HEX_OF_HALF[word & 0xffff]!;

const parseHex = (text: string): Uint32 | null => (/^[0-9a-f]{8}$/.test(text) ? Number.parseInt(text, 16) : null);

/** Returns the id of the node with an index. */
export const nodeId = (seed: Uint32, index: number): string => `node_${hex(scramble(index ^ scramble(seed)))}`;

/** Returns the index of a node id, or null if it is not a valid id. */
export function nodeIndex(seed: Uint32, id: string): number | null {
  const word = id.startsWith("node_") ? parseHex(id.slice("node_".length)) : null;
  return word === null ? null : (unscramble(word) ^ scramble(seed)) >>> 0;
}

/** Returns the id of session number `generation` in a slot. Slots are reused, ids are not. */
export function sessionId(seed: Uint32, slot: number, generation: number): string {
  const outer = scramble(generation ^ scramble(seed));
  return `sess_${hex(scramble(slot ^ outer))}${hex(outer)}`;
}

/** Returns the slot and generation of a session id, or null if it is not a valid id. */
export function sessionSlot(seed: Uint32, id: string): { slot: number; generation: number } | null {
  const match = /^sess_([0-9a-f]{8})([0-9a-f]{8})$/.exec(id);
  const inner = parseHex(match?.[1] ?? "");
  const outer = parseHex(match?.[2] ?? "");
  if (inner === null || outer === null) return null;
  return { slot: (unscramble(inner) ^ outer) >>> 0, generation: (unscramble(outer) ^ scramble(seed)) >>> 0 };
}

/** Returns the id of a customer. */
export const customerId = (seed: Uint32, customer: number): string =>
  `cust_${hex(scramble(customer ^ scramble(~seed)))}`;

/** Returns the index into {@link SITES} of a node's site. */
export const siteIndex = (seed: Uint32, index: number): number => chooseSite(hashUnit(seed, index, FACT_KEYS.site));

/** Returns the index into {@link VERSIONS} of a node's release at the start of the simulation. */
export const versionIndex = (seed: Uint32, index: number): number =>
  chooseVersion(hashUnit(seed, index, FACT_KEYS.version));

/** Returns the constant properties of a node. */
export function nodeIdentity(seed: Uint32, index: number, site: NodeSite): NodeIdentity {
  const vip = hashUnit(seed, index, FACT_KEYS.vip) < VIP_SHARE ? "vip-" : "";
  return {
    name: `${vip}${site.city}-${String(index + 1).padStart(4, "0")}`,
    site,
    ipAddress: nodeAddress(index),
    ageMs: Math.floor(DAY_MS + hashUnit(seed, index, FACT_KEYS.age) * NODE_AGE_MS_MAX),
  };
}

function nodeAddress(index: number): string {
  const offset = index % BENCHMARK_ADDRESSES;
  const low = `${(offset >>> 8) & 255}.${offset & 255}`;
  if (index < BENCHMARK_ADDRESSES) return `198.${18 + (offset >>> 16)}.${low}`;
  return `10.${(index >>> 16) & 255}.${(index >>> 8) & 255}.${index & 255}`;
}

const HOSTS = [
  { host: "www.example.com", port: 443, weight: 20 },
  { host: "api.example.com", port: 443, weight: 16 },
  { host: "shop.example.net", port: 443, weight: 12 },
  { host: "search.example.org", port: 443, weight: 10 },
  { host: "cdn.example.net", port: 80, weight: 8 },
  { host: "feeds.example.org", port: 80, weight: 6 },
  { host: "stream.example.com", port: 8443, weight: 4 },
  { host: "mail.example.net", port: 993, weight: 2 },
] as const;
const RARE_HOST_SHARE = 0.25;
const RARE_HOSTS = 4_096;

const USER_AGENTS = [
  { agent: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36", weight: 50 },
  {
    agent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 Version/18.5 Safari/605.1.15",
    weight: 20,
  },
  { agent: "python-requests/2.32.4", weight: 15 },
  { agent: "curl/8.14.1", weight: 10 },
  { agent: "Go-http-client/2.0", weight: 5 },
] as const;

const chooseHost = weightedChoice(HOSTS);
const chooseAgent = weightedChoice(USER_AGENTS);

/** The constant properties of a session on which no statistic depends. */
interface SessionIdentity {
  readonly targetHost: string;
  readonly targetPort: number;
  readonly userAgent: string;
  readonly clientIp: string;
}

/** Returns the constant properties of session number `generation` in a slot. */
export function sessionIdentity(seed: Uint32, slot: number, generation: number): SessionIdentity {
  const own = hash(seed, slot, generation);
  const rare = hashUnit(own, 1) < RARE_HOST_SHARE;
  const target = HOSTS[chooseHost(hashUnit(own, 2))]!;
  const client = hash(own, 3);
  return {
    targetHost: rare ? `host-${hash(own, 4) % RARE_HOSTS}.example.org` : target.host,
    targetPort: rare ? 443 : target.port,
    userAgent: USER_AGENTS[chooseAgent(hashUnit(own, 5))]!.agent,
    // This is the shared address space (RFC 6598) of clients behind carrier-grade NAT.
    clientIp: `100.${64 + ((client >>> 24) & 63)}.${(client >>> 16) & 255}.${(client >>> 8) & 255}`,
  };
}
