import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { readTextFile } from "../../../src/cli/context.ts";
import { startDaemon } from "../../../src/daemon/daemon.ts";
import { createMemoryStateStore, openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";
import { createSystemClock } from "../../../src/platform/clock.ts";
import { createCron } from "../../../src/platform/cron.ts";
import { createLog } from "../../../src/platform/log.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";

/**
 * Runs the daemon as `run` does, with two differences:
 *
 *     node crashable-daemon.ts CONFIG SPEED [before|after BOUNDARY]
 *
 * Time runs SPEED times as fast, and the process kills itself right before or after the first commit with a change of the kind
 * BOUNDARY reaches the disk.
 */
const [config = "", speed = "1", side, boundary = ""] = process.argv.slice(2);

/** The changes of an episode, in order. */
const boundaries: Readonly<Record<string, (change: JournalChange) => boolean>> = {
  begun: (change) => change.kind === "episode" && change.row.state === "firing",
  intended: (change) => change.kind === "action" && change.row.state === "intended",
  posting: (change) => change.kind === "action" && change.row.state === "posting",
  sent: (change) => change.kind === "action" && change.row.state === "sent",
  ended: (change) => change.kind === "action" && change.row.state === "ended",
  closed: (change) => change.kind === "episode" && change.row.closedAt !== null,
};

function crashAtBoundary(journal: Journal): Journal {
  const isFatal = boundaries[boundary];
  if (isFatal === undefined) return journal;
  return {
    ...journal,
    async commit(changes) {
      const dies = changes.some(isFatal);
      if (dies && side === "before") process.kill(process.pid, "SIGKILL");
      await journal.commit(changes);
      if (dies) process.kill(process.pid, "SIGKILL");
    },
  };
}

// A write beyond the limit of the file size fails with an error, as on a full disk, and does not end the process.
process.on("SIGXFSZ", () => undefined);

const started = await startDaemon({
  clock: createScaledClock(createSystemClock(), Number(speed)),
  cron: createCron(),
  random: Math.random,
  log: createLog({ level: "info", format: "json" }),
  version: "0.0.0-test",
  readConfig: () => readConfigFile(config, process.env),
  readFile: readTextFile,
  openStore({ path }) {
    const opened = openSqliteStore(path!);
    if (!opened.ok) return opened;
    return { ok: true, value: { ...opened.value, journal: crashAtBoundary(opened.value.journal) } };
  },
  createMemoryStore: createMemoryStateStore,
});
if (!started.ok) throw new Error(started.error.join("\n"));
