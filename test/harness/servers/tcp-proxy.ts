import { createConnection, createServer, type Socket } from "node:net";
import type { DurationMs } from "../../../src/base/duration.ts";
import { listen } from "./free-port.ts";

/** A TCP proxy on loopback whose way to the server can be delayed or cut. */
export interface TcpProxy {
  readonly port: number;
  /** Answers of the server are delayed by this. */
  delayMs: DurationMs;
  /** `drop`: bytes in this direction disappear, and connections stay open; null: both directions work. */
  drop: "to_server" | "to_client" | null;
  /** Closes all connections, and refuses new ones until it is false again. */
  setRefusing(isRefusing: boolean): void;
  close(): Promise<void>;
}

/** Starts a proxy to a port on loopback. */
export async function startTcpProxy(serverPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isRefusing = false;
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  };
  const server = createServer((client) => {
    track(client);
    if (isRefusing) {
      client.destroy();
      return;
    }
    const upstream = createConnection({ host: "127.0.0.1", port: serverPort });
    track(upstream);
    client.on("data", (bytes) => {
      if (proxy.drop !== "to_server") upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      const deliver = () => {
        if (proxy.drop !== "to_client" && !client.destroyed) client.write(bytes);
      };
      if (proxy.delayMs > 0) setTimeout(deliver, proxy.delayMs);
      else deliver();
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  const proxy: TcpProxy = {
    port: await listen(server),
    delayMs: 0,
    drop: null,
    setRefusing(refuses) {
      isRefusing = refuses;
      if (refuses) for (const socket of sockets) socket.destroy();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return proxy;
}
