import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { readTextFile } from "../../../src/cli/context.ts";
import { startDaemon } from "../../../src/daemon/daemon.ts";
import { createMemoryStateStore, openStateStore } from "../../../src/journal/sqlite.ts";
import type { Journal, JournalChange } from "../../../src/model/remediation/journal.ts";
import { createSystemClock } from "../../../src/platform/clock.ts";
import { createCron } from "../../../src/platform/cron.ts";
import { createLog } from "../../../src/platform/log.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";

/**
 * The daemon in a process of its own, as `run` starts it, but for its pace and its death:
 *
 *     node mortal.ts CONFIG SPEED [before|after BOUNDARY]
 *
 * Its time runs SPEED times as fast as the real one. It kills itself right before or right after the first commit of the
 * journal that holds a change of that kind is on the disk.
 */
const [config = "", speed = "1", side, boundary = ""] = process.argv.slice(2);

/** Changes that a life of an episode has one after another. */
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
    commit(changes) {
      const dies = changes.some(isFatal);
      if (dies && side === "before") process.kill(process.pid, "SIGKILL");
      journal.commit(changes);
      if (dies) process.kill(process.pid, "SIGKILL");
    },
  };
}

// What a disk refuses is to be an error of the write, as a full one is, and not the end of the process.
process.on("SIGXFSZ", () => undefined);

const started = await startDaemon({
  clock: createScaledClock(createSystemClock(), Number(speed)),
  cron: createCron(),
  random: Math.random,
  log: createLog({ level: "info", format: "json" }),
  version: "0.0.0-test",
  readConfig: () => readConfigFile(config, process.env),
  readFile: readTextFile,
  openStore(folder) {
    const opened = openStateStore(folder);
    if (!opened.ok) return opened;
    return { ok: true, value: { ...opened.value, journal: crashAtBoundary(opened.value.journal) } };
  },
  createMemoryStore: createMemoryStateStore,
});
if (!started.ok) throw new Error(started.error.join("\n"));
