import { expect, test } from "vitest";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { COMPILE_CACHE, startProcess } from "../../integration/process.ts";
import { decisionOf } from "../../journal/arbitrary-changes.ts";

test("an export to a pipe that its reader closes, as head does, is no error", async () => {
  const folder = createTempFolder();
  const config = folder.write("proxywarden.yaml", "state: {path: state}\n");
  const store = orThrow(openSqliteStore(folder.pathOf("state")));
  const rows = Array.from({ length: 5_000 }, (_, index) => ({ kind: "decision", row: decisionOf(index) }) as const);
  await store.journal.commit(rows);
  await store.close();
  const line = `${process.execPath} src/main.ts state export --config ${config} - | head -n 1; exit $PIPESTATUS`;
  const { code, out, err } = await startProcess("bash", ["-c", line], "", COMPILE_CACHE).ended;
  expect({ code, out, err }).toEqual({ code: 0, out: '{"proxywarden_state":2}\n', err: "" });
});
