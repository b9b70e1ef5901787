/** An address and a port, as a URL has them. */
export const hostAndPort = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** URL under which a client on this host reaches a server that listens there. */
export const webUrl = (isEncrypted: boolean, host: string, port: number): string =>
  `${isEncrypted ? "https" : "http"}://${hostAndPort(connectableHost(host), port)}`;

// A wildcard is an address to listen on, none to connect to; no host at all is every address.
function connectableHost(host: string): string {
  if (host === "0.0.0.0" || host === "") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
