import { fork } from "node:child_process";
import { once } from "node:events";

/** Duration of some work, and the longest time that it blocked the event loop. */
export interface Measured {
  readonly ms: number;
  readonly gapMs: number;
}

/** Measures `work` while a probe runs in every turn of the event loop. */
export async function measure(work: () => Promise<unknown>): Promise<Measured> {
  let gapMs = 0;
  let running = true;
  const startedAt = performance.now();
  let turnAt = startedAt;
  const probe = () => {
    const now = performance.now();
    gapMs = Math.max(gapMs, now - turnAt);
    turnAt = now;
    if (running) setImmediate(probe);
  };
  setImmediate(probe);
  await work();
  const endedAt = performance.now();
  running = false;
  return { ms: endedAt - startedAt, gapMs: Math.max(gapMs, endedAt - turnAt) };
}

type Rounds = Readonly<Record<string, () => Promise<unknown>>>;

/** Runs the rounds that the parent process requests by name. */
export function serveRounds(rounds: Rounds): void {
  process.on("message", async (name: string) => process.send?.(await rounds[name]?.()));
}

/** A separate process for one side, so that its memory does not slow down the other. */
export interface Contender {
  ask<Answer>(round: string): Promise<Answer>;
  stop(): void;
}

/** The flags of the first line of src/main.ts. */
export const DAEMON_FLAGS = ["--max-semi-space-size=4", "--v8-pool-size=1"];

/** Starts a process that runs `module` for a fleet of `nodes`, with the daemon's flags. */
export function startContender(module: URL, nodes: number): Contender {
  const child = fork(module, [String(nodes)], {
    execArgv: ["--max-old-space-size=8192", ...DAEMON_FLAGS],
  });
  const exited = once(child, "exit").then(([code]) => {
    throw new Error(`${module.pathname} exited with code ${code}`);
  });
  exited.catch(() => undefined);
  return {
    async ask<Answer>(round: string) {
      const answered = once(child, "message");
      child.send(round);
      const [answer] = (await Promise.race([answered, exited])) as [Answer];
      return answer;
    },
    stop: () => void child.kill(),
  };
}

/** Returns the median, or NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}
