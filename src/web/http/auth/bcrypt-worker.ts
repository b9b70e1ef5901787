import { parentPort } from "node:worker_threads";
import { compareSync } from "bcryptjs";

parentPort?.on("message", ({ password, hash }: { readonly password: string; readonly hash: string }) => {
  parentPort?.postMessage(compareSync(password, hash));
});
