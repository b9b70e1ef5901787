/**
 * Preloaded into the daemon. Measures, between two messages of the parent process, the turn of the event loop that takes
 * the most CPU time of the main thread. Unlike the time of the clock, it leaves out waiting for a processor.
 */
let turnMsMax = 0;
let turnAt = 0;
let isMeasuring = false;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function probe(): void {
  const now = cpuMs();
  turnMsMax = Math.max(turnMsMax, now - turnAt);
  turnAt = now;
  if (isMeasuring) setImmediate(probe);
}

process.on("message", (command: "start" | "stop") => {
  if (command === "stop") {
    isMeasuring = false;
    process.send!(turnMsMax);
    return;
  }
  isMeasuring = true;
  turnMsMax = 0;
  turnAt = cpuMs();
  setImmediate(probe);
  process.send!("started");
});

// The daemon ends although the parent process could still send messages.
process.channel?.unref();
