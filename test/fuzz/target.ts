import { type Random, seededRandom } from "../../src/base/random.ts";

/** One kind of input that comes from outside, and the code that reads it. */
export interface FuzzTarget<Input = unknown> {
  /** Makes the input of a case. It is a JSON value, so that it can be printed; bytes are a text of Latin-1. */
  generate(random: Random): Input;
  /** Reads the input. What it throws, or rejects with, is a failure of the case. */
  run(input: Input): void | Promise<void>;
  close?(): Promise<void>;
}

/** What the module of a target exports. */
export interface FuzzModule {
  createTarget(): FuzzTarget | Promise<FuzzTarget>;
}

/** Fails a case whose input was read without an exception, but with a result that must never be. */
export function insist(isSo: boolean, problem: string): asserts isSo {
  if (!isSo) throw new Error(problem);
}

/** Golden ratio of 32 bits: cases of neighbouring numbers get random sequences that have nothing in common. */
const CASE_STRIDE = 0x9e3779b9;

/** The random numbers of one case: a failing case is replayed by its seed and number alone. */
export const randomOfCase = (seed: number, number: number): Random =>
  seededRandom(Math.imul(seed + 1, 0x85ebca6b) ^ Math.imul(number + 1, CASE_STRIDE));
