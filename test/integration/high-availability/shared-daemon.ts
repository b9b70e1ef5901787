import { readConfigFile } from "../../../src/cli/config/config-loading.ts";
import { startDaemon } from "../../../src/daemon/daemon.ts";
import { openSharedState } from "../../../src/journal/postgres/store.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createLog } from "../../../src/platform/log.ts";
import { fileSecret } from "../../../src/platform/secret-file.ts";
import { createScaledClock } from "../../../src/simulator/clock.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { crashAt } from "../remediation/crash-point.ts";
import type { SharedDaemonOptions } from "./process-group.ts";

/**
 * Runs the daemon as `run` does, on a shared database:
 *
 *     node shared-daemon.ts OPTIONS
 *
 * OPTIONS is a `SharedDaemonOptions` as JSON.
 */
const options: SharedDaemonOptions = JSON.parse(process.argv[2]!);
const { config, name, speed, leaseMs, crash } = options;

/** The wall clock of all daemons and of the service, apart from the skew, whenever they were started. */
const now = () => options.startedAt + (systemClock.now() - options.startedAt) * speed + options.clockSkewMs;
const log = createLog({ level: "info", format: "json" });
const readConfig = () => readConfigFile(config, process.env);
const first = orThrow(readConfig());
const started = await startDaemon(first, {
  clock: { ...createScaledClock(systemClock, speed), now },
  random: Math.random,
  log,
  version: name,
  readConfig,
  async openStore({ postgres }) {
    const { url_file, schema } = postgres!;
    const url = fileSecret(url_file, systemClock);
    if (!url.ok) return { ok: false, error: { message: url.error } };
    const names = { schema, holder: name, publicUrl: `http://${name}.example.net` };
    const opened = await openSharedState({ ...names, url: url.value, leaseMs, clock: systemClock, log });
    if (!opened.ok || crash === null) return opened;
    const shared = opened.value;
    const openStore = async () => {
      const store = await shared.openStore();
      return { ...store, journal: crashAt(store.journal, crash) };
    };
    return { ok: true, value: { ...shared, openStore } };
  },
});
if (!started.ok) {
  console.error(started.error.join("\n"));
  process.exit(1);
}
const daemon = started.value;
process.on("SIGTERM", () => void daemon.stop().then(() => process.exit(0)));
process.on("SIGHUP", () => void daemon.reload());
