import { errorMessage } from "../../base/result.ts";

/**
 * Returns why an address can't be listened on, and what to do about it. The text ends with `choice`, which says how to
 * choose another address.
 */
export function listenProblem(host: string, port: number, error: unknown, choice: string): string {
  const { code = "" } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `another process uses the port (EADDRINUSE): find it with ss -ltnp "sport = :${port}" or lsof -i :${port}, and stop it, or`,
    EACCES: "the process may not use this port (EACCES): give it CAP_NET_BIND_SERVICE, use a port above 1023, or",
  };
  const reason = reasons[code] ?? `${errorMessage(error)};`;
  return `can't listen on ${hostAndPort(host, port)}: ${reason} ${choice}`;
}

/** Returns the URL at which a client on this host reaches a server that listens on an address. */
export function webUrl(isTls: boolean, host: string, port: number): string {
  const wildcards: Readonly<Record<string, string>> = { "": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1" };
  return `${isTls ? "https" : "http"}://${hostAndPort(wildcards[host] ?? host, port)}`;
}

const hostAndPort = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;
