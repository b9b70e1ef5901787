import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { freePort } from "./free-port.ts";

/** A PostgreSQL server of its own, on a data folder of its own. */
export interface PostgresCluster {
  readonly port: number;
  /** Returns the URL of the database. `port`: that of a proxy; absent: the server's. */
  url(options?: { readonly port?: number; readonly host?: string; readonly parameters?: string }): string;
  /** Runs a statement as the superuser. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  start(): Promise<void>;
  /** `fast`: ends all connections; `immediate`: as a crash. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  /** Stops the server and deletes its data. */
  remove(): Promise<void>;
}

const CACHE = fileURLToPath(new URL("../../../node_modules/.cache", import.meta.url));

const STOP_SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT" } as const;

/** Files of a server with TLS. */
export interface ServerTls {
  readonly certificate: string;
  readonly key: string;
}

/**
 * Creates and starts a cluster. `settings`: lines of postgresql.conf; `parent`: where its folder is created. Debian's
 * package `postgresql` must be installed.
 */
export async function startPostgres(
  settings: readonly string[] = [],
  tls?: ServerTls,
  parent = tmpdir(),
): Promise<PostgresCluster> {
  const programs = programFolder();
  const user = serverUser();
  const folder = mkdtempSync(join(parent, "postgres-"));
  const data = join(folder, "data");
  chownSync(folder, user.uid, user.gid);
  createDataFolder(data, programs, user);
  const port = await freePort();
  const files = tls === undefined ? [] : writeTlsFiles(data, tls, user);
  const lines = [`port = ${port}`, "listen_addresses = '127.0.0.1'", `unix_socket_directories = '${folder}'`];
  writeFileSync(join(data, "postgresql.conf"), [...lines, ...files, ...settings, ""].join("\n"), { flag: "a" });
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    const child = spawn(join(programs, "postgres"), ["-D", data], {
      ...user,
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    server = child;
    const output: string[] = [];
    for await (const line of createInterface({ input: child.stderr! })) {
      output.push(line);
      if (line.includes("ready to accept connections")) break;
    }
    if (!output.at(-1)?.includes("ready to accept connections"))
      throw new Error(`PostgreSQL did not start:\n${output.join("\n")}`);
    child.stderr!.resume();
  }

  async function stop(mode: "fast" | "immediate"): Promise<void> {
    const child = server;
    server = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(STOP_SIGNALS[mode]);
    await ended;
  }

  await start();
  return {
    port,
    url: ({ port: proxyPort = port, host = "127.0.0.1", parameters = "" } = {}) =>
      `postgres://postgres@${host}:${proxyPort}/postgres${parameters}`,
    async query(sql, values = []) {
      const client = new pg.Client({ host: "127.0.0.1", port, user: "postgres", database: "postgres" });
      await client.connect();
      try {
        return (await client.query(sql, [...values])).rows;
      } finally {
        await client.end();
      }
    },
    start,
    stop,
    async remove() {
      await stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** New clusters are copies of one, in a folder per version and user, because initdb takes ten times as long as a copy. */
function createDataFolder(data: string, programs: string, user: ServerUser): void {
  const template = join(CACHE, `postgres-${basename(dirname(programs))}-${user.uid}`);
  if (!existsSync(template)) {
    const options = ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"];
    execFileSync(join(programs, "initdb"), options, { ...user, cwd: dirname(data), stdio: "pipe" });
    mkdirSync(CACHE, { recursive: true });
    const copy = mkdtempSync(`${template}-`);
    execFileSync("cp", ["--archive", data, copy]);
    try {
      renameSync(join(copy, basename(data)), template);
    } catch (error) {
      // Another process may have been first.
      if (!existsSync(template)) throw error;
    }
    rmSync(copy, { recursive: true });
  } else execFileSync("cp", ["--archive", template, data]);
}

function writeTlsFiles(data: string, { certificate, key }: ServerTls, { uid, gid }: ServerUser): string[] {
  for (const [name, text] of Object.entries({ "server.crt": certificate, "server.key": key })) {
    const path = join(data, name);
    writeFileSync(path, text);
    chmodSync(path, 0o600);
    chownSync(path, uid, gid);
  }
  return ["ssl = on"];
}

interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL refuses to run as root: then it runs as the user of Debian's package. */
function serverUser(): ServerUser {
  const [uid, gid] = [process.getuid!(), process.getgid!()];
  if (uid !== 0) return { uid, gid };
  const idOf = (option: string) => Number(execFileSync("id", [option, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

function programFolder(): string {
  const root = "/usr/lib/postgresql";
  try {
    const newest = readdirSync(root).toSorted((a, b) => Number(b) - Number(a))[0];
    return join(root, String(newest), "bin");
  } catch {
    throw new Error(`${root} is missing: apt-get install postgresql`);
  }
}
