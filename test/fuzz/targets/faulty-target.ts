import type { FuzzTarget } from "../target.ts";

/** The defect of the target, from the query of the URL by which this module is imported. */
const fault = new URL(import.meta.url).searchParams.get("fault");
/** Share of cases in which the defect occurs. */
const FAULTY_SHARE = 0.02;
const LEAKED_NUMBERS = 3_000;
const SLOW_MICROS = 150_000;

const leaked: number[][] = [];

/** Uses an amount of CPU time. */
function burn(micros: number): void {
  const start = process.threadCpuUsage();
  while (process.threadCpuUsage(start).user < micros);
}

/** A target with a defect, to test how each kind of failure is reported. */
export const createTarget = (): FuzzTarget<boolean> => ({
  generate: (random) => random() < FAULTY_SHARE,
  async run(isFaulty) {
    if (fault === "leak") leaked.push(new Array(LEAKED_NUMBERS).fill(leaked.length));
    if (!isFaulty) return;
    if (fault === "exception") throw new Error("the reader failed");
    if (fault === "unhandled") void Promise.reject(new Error("not handled"));
    if (fault === "slow") burn(SLOW_MICROS);
    if (fault === "hang") for (;;);
  },
});
