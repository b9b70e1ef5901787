import { runTask, type SeedTask } from "./seed-task.ts";

// A process of the pool: runs one task after the other.

// The parent process is gone.
process.on("disconnect", () => process.exit());
process.on("message", (task: SeedTask) => {
  void runTask(task).then((result) => process.send?.(result));
});
