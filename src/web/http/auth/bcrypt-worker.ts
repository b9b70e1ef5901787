import { parentPort } from "node:worker_threads";
import { compareSync } from "bcryptjs";
import type { BcryptJob, BcryptResult } from "./bcrypt.ts";

// A thread of its own: a hash takes a tenth of a second and more, in which nothing else may have to wait.
parentPort?.on("message", ({ id, password, hash }: BcryptJob) => {
  const answer: BcryptResult = { id, matches: compareSync(password, hash) };
  parentPort?.postMessage(answer);
});
