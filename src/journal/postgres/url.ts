import { readFileSync } from "node:fs";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { fail, ok, type Result } from "../../base/result.ts";
import { decodePercent } from "../../base/text.ts";

/** The address of a database, and the user and password to connect with. */
export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Absent if the URL has none. */
  readonly password?: string;
  /** False if TLS is not used. */
  readonly tls: ConnectionOptions | false;
}

const DEFAULT_PORT = 5_432;
const TLS_MODES = ["disable", "require", "verify-ca", "verify-full"];
const TLS_FILES = { ca: "sslrootcert", cert: "sslcert", key: "sslkey" } as const;
const PARAMETERS = ["sslmode", "host", ...Object.values(TLS_FILES)];
const EXAMPLE = "postgres://user:password@host:5432/database?sslmode=verify-full";

/**
 * Reads the URL of a PostgreSQL database, and the PEM files that it names. The parameters in {@link PARAMETERS} are
 * supported, with the meaning that they have in libpq, but TLS is not used unless `sslmode` is set. `host` may be the
 * folder of a Unix socket. The error does not contain the password.
 */
export function parseDatabaseUrl(text: string): Result<DatabaseAddress, string> {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "postgres:" && url.protocol !== "postgresql:"))
    return fail(`it must be the URL of a PostgreSQL database, such as ${EXAMPLE}`);
  const { searchParams: parameters } = url;
  const unknown = [...parameters.keys()].find((key) => !PARAMETERS.includes(key));
  if (unknown !== undefined)
    return fail(`its parameter ${JSON.stringify(unknown)} is not supported; use ${PARAMETERS.join(", ")}`);
  const host = parameters.get("host") ?? decodePercent(url.hostname).replace(/^\[(.*)\]$/, "$1");
  const database = decodePercent(url.pathname.slice(1));
  const user = decodePercent(url.username);
  const missing = Object.entries({ host, database, user }).find(([, value]) => value === "");
  if (missing !== undefined) return fail(`it names no ${missing[0]}; it must look like ${EXAMPLE}`);
  if (host.includes(",")) return fail("it names several hosts; name one");
  const tls = readTls(parameters, host);
  if (!tls.ok) return tls;
  const password = url.password === "" ? {} : { password: decodePercent(url.password) };
  return ok({ host, port: Number(url.port || DEFAULT_PORT), database, user, ...password, tls: tls.value });
}

function readTls(parameters: URLSearchParams, host: string): Result<ConnectionOptions | false, string> {
  const mode = parameters.get("sslmode") ?? "disable";
  if (!TLS_MODES.includes(mode))
    return fail(
      `its sslmode is ${JSON.stringify(mode)}; it must be ${TLS_MODES.slice(0, -1).join(", ")} or verify-full`,
    );
  if (mode === "disable") return ok(false);
  const files: { ca?: string; cert?: string; key?: string } = {};
  for (const [option, parameter] of Object.entries(TLS_FILES)) {
    const path = parameters.get(parameter);
    if (path === null) continue;
    try {
      files[option as keyof typeof TLS_FILES] = readFileSync(path, "utf8");
    } catch (error) {
      return fail(`its ${parameter} ${path} can't be read: ${(error as NodeJS.ErrnoException).code}`);
    }
  }
  // As in libpq, `require` verifies the certificate only if a CA is given.
  const verifies = mode !== "require" || files.ca !== undefined;
  return ok({
    ...files,
    rejectUnauthorized: verifies,
    // For an IP address, Node would look for "localhost" in the certificate.
    checkServerIdentity: (_, certificate) =>
      mode === "verify-full" ? checkServerIdentity(host, certificate) : undefined,
  });
}
