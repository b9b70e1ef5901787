import { createServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { type CertificateAuthority, createAuthority } from "../../web/http/tls/certificate-authority.ts";
import { configText, failures, NODES, nodesOn, startNetwork, startTestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Starts a TLS server in front of a service that requires client certificates of one authority. */
async function startGateway(serviceUrl: string, authority: CertificateAuthority) {
  const { cert, key } = authority.issue("DNS:service.test");
  const clientNames: string[] = [];
  const server = createServer(
    { cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
    (incoming, response) => {
      const peer = (incoming.socket as TLSSocket).getPeerCertificate();
      clientNames.push(peer.subjectaltname ?? "none");
      const { authorization = "" } = incoming.headers;
      fetch(serviceUrl + incoming.url, { headers: { authorization } })
        .then(async (answer) => {
          response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
        })
        .catch(() => response.destroy());
    },
  );
  return {
    server,
    clientNames,
    url: `https://127.0.0.1:${await listenInTest(server)}`,
    /** Requires certificates of another authority from now on. */
    require(next: CertificateAuthority) {
      server.setSecureContext({ cert, key, ca: next.cert });
      server.closeAllConnections();
    },
  };
}

test("the daemon uses its client certificate, and a renewed one without a restart", async () => {
  const [authority, next] = [createAuthority("first"), createAuthority("second")];
  const network = await startNetwork();
  const gateway = await startGateway(network.url, authority);
  const folder = createTempFolder();
  const writeCertificate = (issuer: CertificateAuthority, name: string) => {
    const { cert, key } = issuer.issue(`DNS:${name}`, "clientAuth");
    folder.write("client.key", key);
    folder.write("client.crt", cert);
  };
  writeCertificate(authority, "first.test");
  const tls_config = {
    ca_file: folder.write("ca.crt", authority.cert),
    cert_file: folder.pathOf("client.crt"),
    key_file: folder.pathOf("client.key"),
    server_name: "service.test",
  };
  const config = configText(gateway.url, { service: { tls_config } });
  const daemon = await startTestDaemon(network.clock, config);
  const untilExported = (what: string) => waitUntil(what, async () => nodesOn(await daemon.scrape()) === NODES);
  await untilExported("the network is exported");
  expect(new Set(gateway.clientNames)).toEqual(new Set(["DNS:first.test"]));

  gateway.require(next);
  const refused = await waitUntil("the old certificate is refused", async () => {
    const page = await daemon.scrape();
    return failures(page, "nodes", "unreachable") + failures(page, "nodes", "reset") > 0 && page;
  });
  expect(refused.sum("proxywarden_collect_failures_total", { collector: "nodes", reason: "internal" })).toBe(0);
  writeCertificate(next, "second.test");
  await waitUntil("the renewed certificate is used", () => gateway.clientNames.includes("DNS:second.test"));
  await untilExported("the network is exported again");
});
