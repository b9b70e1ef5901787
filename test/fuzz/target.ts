import { type Random, seededRandom } from "../../src/base/random.ts";

/** A kind of external input, and the code that reads it. */
export interface FuzzTarget<Input = unknown> {
  /** Generates the input of a case. It must be a JSON value, so that it can be printed; bytes are Latin-1 strings. */
  generate(random: Random): Input;
  /** Reads the input. The case fails if this throws or rejects. */
  run(input: Input): void | Promise<void>;
  close?(): Promise<void>;
}

/** The exports of a target's module. */
export interface FuzzModule {
  createTarget(): FuzzTarget | Promise<FuzzTarget>;
}

/** Fails a case with a wrong result. */
export function assert(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}

/** The golden ratio in 32 bits: cases with consecutive numbers get independent random sequences. */
const CASE_STRIDE = 0x9e3779b9;

/** Returns the random numbers of a case, which is reproducible from its seed and number. */
export const randomOfCase = (seed: number, number: number): Random =>
  seededRandom(Math.imul(seed + 1, 0x85ebca6b) ^ Math.imul(number + 1, CASE_STRIDE));
