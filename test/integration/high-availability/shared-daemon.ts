import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { readTextFile } from "../../../src/cli/context.ts";
import { startDaemon } from "../../../src/daemon/daemon.ts";
import { openSharedState } from "../../../src/journal/postgres/store.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { createSystemClock } from "../../../src/platform/clock.ts";
import { createCron } from "../../../src/platform/cron.ts";
import { createLog } from "../../../src/platform/log.ts";
import { fileSecret } from "../../../src/platform/secret-file.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";

/**
 * Runs the daemon as `run` does, on a shared database:
 *
 *     node shared-daemon.ts CONFIG SPEED LEASE_MS
 *
 * Time runs SPEED times as fast, but the lease is in real time, as the database measures it.
 */
const [config = "", speed = "1", leaseMs = ""] = process.argv.slice(2);

const realClock = createSystemClock();
const log = createLog({ level: "info", format: "json" });
const started = await startDaemon({
  clock: createScaledClock(realClock, Number(speed)),
  cron: createCron(),
  random: Math.random,
  log,
  version: "0.0.0-test",
  readConfig: () => readConfigFile(config, process.env),
  readFile: readTextFile,
  openStore({ postgres }) {
    const { url_file, schema, instance = "unnamed" } = postgres!;
    const url = fileSecret(url_file, realClock);
    if (!url.ok) return { ok: false, error: { message: url.error } };
    const names = { schema, holder: instance, publicUrl: `http://${instance}.example.net` };
    return openSharedState({ ...names, url: url.value, leaseMs: Number(leaseMs), clock: realClock, log });
  },
  createMemoryStore: createMemoryStateStore,
});
if (!started.ok) throw new Error(started.error.join("\n"));
const daemon = started.value;
process.on("SIGTERM", () => void daemon.stop().then(() => process.exit(0)));
process.on("SIGHUP", () => void daemon.reload());
