import type { Server, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { listen } from "./free-port.ts";

/** Makes a server listen on a free port until the test ends, which closes its connections. Returns the port. */
export async function listenInTest(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => void sockets.add(socket));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return listen(server);
}
