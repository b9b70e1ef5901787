import { runTask, type SeedTask } from "./seed-task.ts";

// A process of the pool: runs what it is asked for, one task after the other.

// Nothing waits for an answer any more.
process.on("disconnect", () => process.exit());
process.on("message", (task: SeedTask) => {
  void runTask(task).then((result) => process.send?.(result));
});
