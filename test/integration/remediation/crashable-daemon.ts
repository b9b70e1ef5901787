import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { startDaemon } from "../../../src/daemon/daemon.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createLog } from "../../../src/platform/log.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { type CrashBoundary, type CrashPoint, crashAt } from "./crash-point.ts";

/**
 * Runs the daemon as `run` does, with two differences:
 *
 *     node crashable-daemon.ts CONFIG SPEED [before|after BOUNDARY]
 *
 * Time runs SPEED times as fast, and the process kills itself right before or after the first commit with a change of
 * the kind BOUNDARY reaches the disk.
 */
const [config = "", speed = "1", when, boundary] = process.argv.slice(2);
const crashPoint =
  when === undefined ? null : { when: when as CrashPoint["when"], boundary: boundary as CrashBoundary };

// A write beyond the limit of the file size fails with an error, as on a full disk, and does not end the process.
process.on("SIGXFSZ", () => undefined);

const readConfig = () => readConfigFile(config, process.env);
const started = await startDaemon(orThrow(readConfig()), {
  clock: createScaledClock(systemClock, Number(speed)),
  random: Math.random,
  log: createLog({ level: "info", format: "json" }),
  version: "0.0.0-test",
  readConfig,
  openStore({ path }) {
    const opened = openSqliteStore(path!);
    if (!opened.ok) return opened;
    if (crashPoint === null) return opened;
    return { ok: true, value: { ...opened.value, journal: crashAt(opened.value.journal, crashPoint) } };
  },
});
orThrow(started);
