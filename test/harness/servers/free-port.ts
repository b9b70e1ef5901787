import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/**
 * Ports below those that Linux gives to sockets without one (from 32,768 on), so that no other socket gets the port
 * before the server starts or while it is stopped.
 */
const FIRST_PORT = 20_000;
const PORTS_COUNT = 12_000;

/** Returns a TCP port of the loopback interface that no server uses now. */
export async function freePort(): Promise<number> {
  const port = FIRST_PORT + Math.floor(Math.random() * PORTS_COUNT);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return freePort();
  }
  server.close();
  await once(server, "close");
  return port;
}

/** Makes a server listen on a free port of the loopback interface. Returns the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}
