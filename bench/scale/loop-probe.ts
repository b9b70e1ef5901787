// Preloaded into the daemon. Measures the longest turn of its event loop between two messages of the parent process.
let turnMsMax = 0;
let turnAt = 0;
let isMeasuring = false;

function probe(): void {
  const now = performance.now();
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
  turnAt = performance.now();
  setImmediate(probe);
  process.send!("started");
});

// The daemon ends although the parent process could still send messages.
process.channel?.unref();
