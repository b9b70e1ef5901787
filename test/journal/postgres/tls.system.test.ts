import { expect, onTestFinished, test } from "vitest";
import { ok } from "../../../src/base/result.ts";
import { openMigratedDatabase } from "../../../src/journal/postgres/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { startPostgres } from "../../harness/servers/postgres-cluster.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { createAuthority } from "../../web/http/tls/certificate-authority.ts";
import { postgresDeps } from "../state-stores.ts";

/** Starts a server whose certificate `authority` has issued, and not `other`. */
async function startTlsCluster() {
  const [authority, other] = [createAuthority("ours"), createAuthority("other")];
  const { cert, key } = authority.issue("DNS:localhost");
  const cluster = await startPostgres(["fsync = off"], { certificate: cert, key });
  onTestFinished(cluster.remove);
  return { folder: createTempFolder(), authority, other, cluster };
}

test("sslmode: verify-full needs the name and the authority, verify-ca the authority, require only TLS", async () => {
  const { folder, authority, other, cluster } = await startTlsCluster();
  const ours = `sslrootcert=${folder.write("ours.pem", authority.cert)}`;
  const theirs = `sslrootcert=${folder.write("other.pem", other.cert)}`;

  /** Returns "ok", or why the database can't be opened. */
  async function connect(host: string, parameters: string): Promise<string> {
    const url = cluster.url({ host, parameters: `?${parameters}` });
    const opened = await openMigratedDatabase(await postgresDeps("tls", url));
    if (!opened.ok) return opened.error.message;
    const [row] = await opened.value.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    await opened.value.close();
    return row?.ssl === true ? "ok" : "without TLS";
  }

  expect(await connect("localhost", `sslmode=verify-full&${ours}`)).toBe("ok");
  expect(await connect("127.0.0.1", `sslmode=verify-full&${ours}`)).toMatch(/127\.0\.0\.1.*(altnames|cert)/);
  const untrusted = /certificate; sslrootcert in the URL must name the file of its authority$/;
  expect(await connect("localhost", `sslmode=verify-full&${theirs}`)).toMatch(untrusted);
  expect(await connect("localhost", "sslmode=verify-full")).toMatch(untrusted);
  expect(await connect("127.0.0.1", `sslmode=verify-ca&${ours}`)).toBe("ok");
  expect(await connect("127.0.0.1", `sslmode=verify-ca&${theirs}`)).toMatch(/certificate/);
  expect(await connect("127.0.0.1", "sslmode=require")).toBe("ok");
  expect(await connect("127.0.0.1", "sslmode=disable")).toBe("without TLS");
});

test("new connections use a changed user, password and certificate, without a restart", async () => {
  const { folder, authority, other, cluster } = await startTlsCluster();
  const path = folder.write("ca.pem", authority.cert);
  const url = cluster.url({ host: "localhost", parameters: `?sslmode=verify-full&sslrootcert=${path}` });
  let current = url;
  const deps = { ...(await postgresDeps("tls", url)), url: { value: () => current, refresh: () => ok(false) } };
  const opened = orThrow(await openMigratedDatabase(deps));
  const database = opened;
  onTestFinished(() => database.close());
  /** Returns the user of a new connection, or null if none can be made. */
  async function userOfNewConnection(): Promise<unknown> {
    await database.query("SELECT pg_terminate_backend(pg_backend_pid())").catch(() => undefined);
    return database.query("SELECT current_user").then(
      ([row]) => row!.current_user,
      () => null,
    );
  }

  folder.write("ca.pem", other.cert);
  expect(await userOfNewConnection()).toBeNull();
  folder.write("ca.pem", authority.cert);
  await cluster.query("CREATE ROLE renewed LOGIN");
  current = url.replace("postgres@", "renewed@");
  await waitUntil("the new user is used", async () => (await userOfNewConnection()) === "renewed");
});
