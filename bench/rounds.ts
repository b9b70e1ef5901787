import { fork } from "node:child_process";
import { once } from "node:events";

/** How long something took, and how long the loop was kept from other work at a time while it did. */
export interface Measured {
  readonly ms: number;
  readonly gapMs: number;
}

/** Measures `work`, with a probe that wants its turn all the time. */
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

/** In a process of its own: does what the parent asks for, by name. */
export function serveRounds(rounds: Rounds): void {
  process.on("message", async (name: string) => process.send?.(await rounds[name]?.()));
}

/** A process that does rounds: what one side keeps in memory slows down no other. */
export interface Contender {
  ask<Answer>(round: string): Promise<Answer>;
  stop(): void;
}

/** Starts `module` for a fleet of `nodes`. */
export function startContender(module: URL, nodes: number): Contender {
  const child = fork(module, [String(nodes)], { execArgv: ["--max-old-space-size=8192"] });
  const exited = once(child, "exit").then(([code]) => {
    throw new Error(`${module.pathname} ended with code ${code}`);
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

/** The middle one of an odd number of values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
