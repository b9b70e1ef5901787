import pg from "pg";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { errorMessage, ok, type Result } from "../../base/result.ts";
import { NODE_CA_ADVICE } from "../../base/text.ts";
import type { Clock, Log, Secret } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { type StoreFailure, storeFailure } from "../open-failure.ts";
import type { Row } from "../row-queries.ts";
import { type DatabaseAddress, parseDatabaseUrl } from "./url.ts";

/** Dependencies of a database. */
export interface DatabaseDeps {
  /** The URL. Its user and password, and the files that it names, may change while the daemon runs. */
  readonly url: Secret;
  /** Name of the schema, not quoted. */
  readonly schema: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Parameters of a statement. */
type Parameters = readonly (string | number | boolean | null)[];

/** Runs statements on one connection. */
export interface Connection {
  /** Rejects if there is no result after `timeoutMs`, {@link QUERY_TIMEOUT_MS} by default. */
  query(sql: string, parameters?: Parameters, timeoutMs?: DurationMs): Promise<readonly Row[]>;
}

/** Enough for a commit, a renewal of the lease, and two other statements at the same time. */
const CONNECTIONS_MAX = 4;
/** See {@link Database.history}. */
const HISTORY_CONNECTIONS_MAX = 2;
const CONNECT_TIMEOUT_MS: DurationMs = 5 * SECOND_MS;
/** The server ends a statement after this time. */
const STATEMENT_TIMEOUT_MS: DurationMs = 10 * SECOND_MS;
/**
 * The server ends a transaction that receives no statement for this time. Otherwise the locks of a client whose host
 * was lost would last until the server notices, which may take hours.
 */
const IDLE_TRANSACTION_TIMEOUT_MS: DurationMs = 30 * SECOND_MS;
/** The client closes the connection after this time. The server has ended the statement by then. */
const QUERY_TIMEOUT_MS: DurationMs = 15 * SECOND_MS;
/** Wait before the next attempt to connect, doubled after each failure. */
const RETRY_DELAY_MS: DurationMs = SECOND_MS / 4;
const RETRY_DELAY_MS_MAX: DurationMs = 5 * SECOND_MS;

/**
 * Begins a transaction in which all queries see the same rows. It locks none of them, and an export may wait for the
 * program that reads its output, so it may be idle for longer.
 */
export const READ_SNAPSHOT =
  "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '10min'";

/** Why a database can't be used, as opposed to an error in a statement. */
class DatabaseUnavailable extends Error {}

/** PostgreSQL's code for a statement that took too long, for example because it waited for a lock. */
const QUERY_CANCELED = "57014";

/** Codes of connection errors that show that the server does not answer now. */
const UNREACHABLE_CODES: ReadonlySet<unknown> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOENT"],
  ...["EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ENETDOWN", "ENOTFOUND", "EAI_AGAIN"],
]);

/**
 * Returns whether an error shows that the server does not answer now, because it can't be reached, is starting or
 * stopping, lacks connections, memory or disk space, or takes too long. Returns false if the server refuses the
 * password, or if this client rejects the server's certificate.
 */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return isUnreachable(error.cause);
  if (error instanceof AggregateError) return error.errors.some(isUnreachable);
  if (error instanceof pg.DatabaseError)
    return isShutdown(error) || error.code === QUERY_CANCELED || error.code?.startsWith("53") === true;
  if (!(error instanceof Error)) return false;
  return "code" in error ? UNREACHABLE_CODES.has(error.code) : /timeout|terminated|not queryable/i.test(error.message);
}

/**
 * A PostgreSQL database. A lost connection is replaced by the next statement. After a connection could not be made,
 * statements fail immediately until the wait is over, and then try to connect again. The wait grows from
 * {@link RETRY_DELAY_MS} to {@link RETRY_DELAY_MS_MAX}.
 */
export class Database implements Connection {
  /** The name of the schema, quoted, for statements. */
  readonly schema: string;
  /** The name of the schema. */
  readonly schemaName: string;
  /** The database as messages name it, without a password. */
  readonly name: string;
  readonly #pool: pg.Pool;
  readonly #openHistory: () => Database;
  #history: Database | null = null;
  readonly #clock: Clock;
  readonly #log: Log;
  #failures = 0;
  #retryAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  /** Why the last connection could not be made, or null if it was made. */
  #failure: DatabaseUnavailable | null = null;
  #closing: Promise<void> | null = null;

  constructor(address: DatabaseAddress, deps: DatabaseDeps, connectionsMax = CONNECTIONS_MAX) {
    const { host, port, database, user } = address;
    const { url, schema, clock, log } = deps;
    this.#openHistory = () => new Database(address, deps, HISTORY_CONNECTIONS_MAX);
    this.schema = quoteName(schema);
    this.schemaName = schema;
    this.name = `postgres://${user}@${host}:${port}/${database}`;
    this.#clock = clock;
    this.#log = log;
    this.#pool = new pg.Pool({
      host,
      port,
      database,
      Client: clientOf(url, address),
      max: connectionsMax,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
      application_name: "proxywarden",
      keepAlive: true,
    });
    // A connection that is lost in use fails its statement, and one that is lost while idle is replaced when it is
    // needed. Without listeners, the process would end.
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
    this.#pool.on("error", (error) => log.debug({ err: error }, "idle database connection lost"));
  }

  /**
   * Runs one statement. Rejects with {@link DatabaseUnavailable} if there is no connection, or with PostgreSQL's error.
   */
  query(sql: string, parameters?: Parameters, timeoutMs?: DurationMs): Promise<readonly Row[]> {
    return this.use((connection) => connection.query(sql, parameters, timeoutMs));
  }

  /** Runs `work` in a transaction. `begin` is the statement that begins it. */
  transaction<T>(work: (connection: Connection) => Promise<T>, begin = "BEGIN"): Promise<T> {
    return this.use(async (connection) => {
      await connection.query(begin);
      // After an error the connection is closed, which rolls back.
      const result = await work(connection);
      await connection.query("COMMIT");
      return result;
    });
  }

  /** Runs `work` on one connection, and rejects as {@link query} does. The connection is closed if `work` rejects. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    try {
      const result = await work({
        async query(text, parameters = [], timeoutMs = QUERY_TIMEOUT_MS) {
          // The types of pg lack the timeout of a single query.
          const query = { text, values: parameters.map(withoutNul), query_timeout: timeoutMs };
          return (await client.query(query)).rows;
        },
      });
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      // pg reports failures of the connection in several ways. Errors of statements and of `work` are passed on.
      if (error instanceof pg.DatabaseError && !isShutdown(error)) throw error;
      throw error instanceof Error && !isConnectionFailure(error) ? error : this.#unavailable(error);
    }
  }

  /**
   * Returns the same database with connections of its own, for queries that users make. If many of them wait for a slow
   * database, commits and renewals of the lease still have connections.
   */
  history(): Database {
    this.#history ??= this.#openHistory();
    return this.#history;
  }

  /** Closes all connections. Further calls have no effect. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#pool.end(), this.#history?.close()]).then(() => undefined);
    return this.#closing;
  }

  async #connect(): Promise<pg.PoolClient> {
    if (this.#failure !== null && this.#clock.monotonic() < this.#retryAt) throw this.#failure;
    try {
      const client = await this.#pool.connect();
      if (this.#failures > 0) this.#log.info({ database: this.name }, "database connection restored");
      this.#failures = 0;
      this.#failure = null;
      return client;
    } catch (error) {
      if (this.#failures === 0) this.#log.warn({ err: error, database: this.name }, "database connection failed");
      const delayMs = Math.min(RETRY_DELAY_MS_MAX, RETRY_DELAY_MS * 2 ** Math.min(this.#failures, 10));
      this.#failures++;
      this.#retryAt = this.#clock.monotonic() + delayMs;
      this.#failure = this.#unavailable(error);
      throw this.#failure;
    }
  }

  #unavailable(error: unknown): DatabaseUnavailable {
    const what = isUnreachable(error) ? "can't be reached" : "can't be used";
    return new DatabaseUnavailable(`${this.name} ${what}: ${connectionProblem(error)}`, { cause: error });
  }
}

/** Opens a database. Connects with the first statement. The error says what is wrong with its URL. */
export function openDatabase(deps: DatabaseDeps): Result<Database, StoreFailure> {
  const address = parseDatabaseUrl(deps.url.value());
  if (address.ok) return ok(new Database(address.value, deps));
  return storeFailure("unusable", `the URL of the database can't be used: ${address.error}`);
}

/** Quotes an identifier. */
const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * Returns a value as JSON that PostgreSQL's jsonb accepts. NUL and halves of surrogate pairs, which the service may
 * send in names, are replaced by U+FFFD, as in text that is decoded from invalid bytes.
 */
export const toJsonText = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (sequence) =>
    sequence === "\\\\" ? sequence : "\ufffd",
  );

/** Replaces NUL, which texts of PostgreSQL can't contain. */
const withoutNul = (value: Parameters[number]): Parameters[number] =>
  typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;

/**
 * Returns a class of clients, each of which connects as the current URL says, but to the `first` server and database.
 */
const clientOf = (url: Secret, first: DatabaseAddress) =>
  class extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      const address = parseDatabaseUrl(url.value());
      const { user, password = "", tls } = address.ok ? address.value : first;
      super({ ...config, user, password, ssl: tls });
    }
  };

/**
 * Returns whether the server ended or refused the connection because it shuts down or starts up, or because an
 * administrator ended it.
 */
const isShutdown = ({ code = "" }: pg.DatabaseError): boolean => code.startsWith("57P") || code.startsWith("08");

const isConnectionFailure = (error: Error): boolean =>
  "code" in error || /connection|timeout|not queryable|socket/i.test(error.message);

function connectionProblem(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(connectionProblem).join("; ");
  return errorMessage(error).replace(NODE_CA_ADVICE, "; sslrootcert in the URL must name the file of its authority");
}
