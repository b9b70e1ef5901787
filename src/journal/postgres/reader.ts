import { errorMessage, ok, type Result } from "../../base/result.ts";
import { type StoreFailure, storeFailure } from "../open-failure.ts";
import { createStateReader } from "../row-queries.ts";
import type { StateReader } from "../state-rows.ts";
import { type Connection, type DatabaseDeps, isUnreachable, openDatabase, READ_SNAPSHOT } from "./database.ts";
import { schemaProblem } from "./migrations.ts";

/** Opens a snapshot of the journal for reading, even while daemons use it. Changes nothing. Close it soon. */
export async function openPostgresReader(deps: DatabaseDeps): Promise<Result<StateReader, StoreFailure>> {
  const opened = openDatabase(deps);
  if (!opened.ok) return opened;
  const database = opened.value;
  const beginning = Promise.withResolvers<Connection>();
  const ending = Promise.withResolvers<void>();
  const transaction = database.transaction((connection) => {
    beginning.resolve(connection);
    return ending.promise;
  }, READ_SNAPSHOT);
  transaction.catch(beginning.reject);
  async function close(): Promise<void> {
    ending.resolve();
    await transaction.catch(() => undefined);
    await database.close();
  }
  try {
    const connection = await beginning.promise;
    const problem = await schemaProblem(connection, database);
    if (problem === null) return ok({ ...createStateReader(connection, database.schema), close });
    await close();
    return storeFailure(problem.kind, problem.message);
  } catch (error) {
    await close();
    return storeFailure(isUnreachable(error) ? "unreachable" : "unusable", errorMessage(error));
  }
}
