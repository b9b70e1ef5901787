import { gunzipSync } from "node:zlib";
import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import type { Share } from "../../../src/base/percent.ts";
import { type Random, seededRandom } from "../../../src/base/random.ts";
import { fail, ok, type Result } from "../../../src/base/result.ts";
import type {
  Clock,
  Transport,
  TransportFailure,
  TransportRequest,
  TransportResponse,
} from "../../../src/model/ports.ts";
import type { EpochMs } from "../../../src/model/time.ts";
import { type Reply, replyBytes } from "../../../src/simulator/http/reply.ts";
import {
  beginRequest,
  finishRequest,
  handleRequest,
  type SimulatedService,
  servedUntil,
  serviceTime,
} from "../../../src/simulator/http/service.ts";

/** Options of the simulated network. */
export interface NetworkOptions {
  /** Time from a request to its response. Defaults to 20 ms; with 0 no time passes. */
  readonly latencyMs?: DurationMs;
  /** Share by which the latency varies at random, from a fixed seed. Defaults to 0. */
  readonly jitter?: Share;
  /** Maximum size of a body in bytes. Defaults to 16 MiB, like the real client. */
  readonly bodyBytesMax?: number;
}

const LATENCY_MS: DurationMs = 20;
const BODY_BYTES_MAX = 16 * 1_024 * 1_024;
const JITTER_SEED = 1;
const BLANK = 0x20;

type Outcome = Result<TransportResponse, TransportFailure>;

/** State of a transport. */
interface Network {
  readonly clock: Clock;
  readonly latencyMs: DurationMs;
  readonly jitter: Share;
  readonly bodyBytesMax: number;
  readonly random: Random;
}

/**
 * Creates a transport to the service without sockets. Latency passes on `clock`. An abort in the first half of the
 * latency prevents the execution of the request; a later one loses its reply, and the service does not notice it.
 * Delivery faults become the failures that a client on a real socket reports. Like the real client, it accepts gzip.
 */
export function createSimulatedTransport(
  service: SimulatedService,
  clock: Clock,
  options: NetworkOptions = {},
): Transport {
  const network: Network = {
    clock,
    latencyMs: options.latencyMs ?? LATENCY_MS,
    jitter: options.jitter ?? 0,
    bodyBytesMax: options.bodyBytesMax ?? BODY_BYTES_MAX,
    random: seededRandom(JITTER_SEED),
  };
  const time = serviceTime(service.clockAnchors, clock);

  const exchange = async (
    request: TransportRequest,
    signal: AbortSignal,
    onHandled: (servedUntil: EpochMs) => void,
  ): Promise<Outcome> => {
    if (request.mayBeSent?.() === false)
      return fail({ kind: "unreachable", message: "it was not sent: this daemon's lease has ended" });
    const latencyMs = network.latencyMs * (1 + network.jitter * (2 * network.random() - 1));
    if (await sleepUnlessAborted(network, latencyMs / 2, signal)) return aborted();
    const headers = { "accept-encoding": "gzip", ...lowerCased(request.headers) };
    const reply = handleRequest(service, { ...request, headers }, time());
    onHandled(servedUntil(reply, time() + latencyMs / 2));
    if (await sleepUnlessAborted(network, latencyMs / 2, signal)) return aborted();
    return deliver(network, decompressReply(reply), signal);
  };

  return {
    async request(request, signal) {
      if (signal.aborted) return aborted();
      beginRequest(service);
      let doneAt = Number.NEGATIVE_INFINITY;
      try {
        return await exchange(request, signal, (until) => {
          doneAt = until;
        });
      } finally {
        finishRequest(service, doneAt);
      }
    },
    close: () => Promise.resolve(),
  };
}

/** Sleeps and returns whether the request was aborted in the meantime. */
async function sleepUnlessAborted(network: Network, ms: DurationMs, signal: AbortSignal): Promise<boolean> {
  if (ms > 0) await network.clock.sleep(ms, signal);
  return signal.aborted;
}

async function deliver(network: Network, reply: Reply, signal: AbortSignal): Promise<Outcome> {
  const { status, headers, deliveryFault } = reply;
  const body = replyBytes(reply);
  const complete = (bytes: Uint8Array): Outcome =>
    bytes.length > network.bodyBytesMax ? tooLarge(network) : ok({ status, headers, body: bytes });
  switch (deliveryFault?.kind) {
    case undefined:
      return complete(body);
    case "hang":
      await untilAborted(signal);
      return aborted();
    case "reset":
      return reset("the connection was reset before the response");
    case "truncate":
      return reset("the connection was reset in the middle of the body");
    case "slow_drip": {
      const dripMs = Math.ceil((body.length / deliveryFault.bytesPerSecond) * SECOND_MS);
      return (await sleepUnlessAborted(network, dripMs, signal)) ? aborted() : complete(body);
    }
    case "huge_body":
      return deliveryFault.bytes > network.bodyBytesMax
        ? tooLarge(network)
        : complete(padWithBlanks(body, deliveryFault.bytes));
    default:
      return deliveryFault satisfies never;
  }
}

/** Decompresses a reply, as a client that accepts gzip does. */
function decompressReply(reply: Reply): Reply {
  const { "content-encoding": encoding, ...headers } = reply.headers;
  return encoding === "gzip" ? { ...reply, headers, body: gunzipSync(replyBytes(reply)) } : reply;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function padWithBlanks(body: Uint8Array, bytes: number): Uint8Array {
  const padded = new Uint8Array(Math.max(bytes, body.length)).fill(BLANK);
  padded.set(body, padded.length - body.length);
  return padded;
}

const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const aborted = (): Outcome => fail({ kind: "aborted", message: "the request was aborted" });

const reset = (message: string): Outcome => fail({ kind: "reset", message });

const tooLarge = (network: Network): Outcome =>
  fail({ kind: "too_large", message: `the body is larger than ${network.bodyBytesMax} bytes` });
