import type { Transport } from "../model/ports.ts";
import { createTransport, type TransportOptions } from "./transport.ts";

/** Keeps one transport for options that may change while it is used, such as renewed certificates. */
export interface CurrentTransport {
  /** Returns a sender by these options. Where they differ from the last ones, the old transport closes after its last request. */
  forOptions(options: TransportOptions): Pick<Transport, "request">;
  /** Closes all of them; requests in flight fail. */
  close(): Promise<void>;
}

interface CountedTransport {
  readonly key: string;
  readonly transport: Transport;
  inFlight: number;
}

/** No transport yet. */
export function createCurrentTransport(): CurrentTransport {
  const open = new Set<CountedTransport>();
  let current: CountedTransport | null = null;

  function closeIdle(): void {
    for (const each of open) {
      if (each === current || each.inFlight > 0) continue;
      open.delete(each);
      void each.transport.close();
    }
  }

  return {
    forOptions(options) {
      const key = JSON.stringify(options);
      if (current?.key !== key) {
        current = { key, transport: createTransport(options), inFlight: 0 };
        open.add(current);
        closeIdle();
      }
      const used = current;
      return {
        async request(request, signal) {
          used.inFlight++;
          const outcome = await used.transport.request(request, signal);
          used.inFlight--;
          closeIdle();
          return outcome;
        },
      };
    },
    async close() {
      await Promise.all([...open].map(({ transport }) => transport.close()));
    },
  };
}
