import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Another process with the store of a folder open. */
export interface OtherProcess {
  /** Its next line; `undefined`, as text, once it is gone. */
  line(): Promise<string>;
  /** Kills it, as a power cut would; gives what lines it still had said. */
  kill(): Promise<readonly string[]>;
}

const children: ChildProcess[] = [];

/** Ends what a test left running. */
export function killOtherProcesses(): void {
  for (const child of children.splice(0)) child.kill("SIGKILL");
}

/**
 * A process that opens the store in `folder`, then runs `body` with it and a function that prints a line. With
 * `fileBytesMax` the system refuses it to write files beyond that.
 */
export function startOtherProcess(folder: string, body: string, fileBytesMax?: number): OtherProcess {
  const source = `
    import { openSqliteStore } from ${JSON.stringify(join(import.meta.dirname, "../../../src/journal/sqlite/store.ts"))};
    import { writeSync } from "node:fs";
    const say = (line) => writeSync(1, line + "\\n");
    const store = openSqliteStore(${JSON.stringify(folder)});
    if (!store.ok) say(store.error.kind); else { ${body} }
    setInterval(() => {}, 1_000);`;
  const command = [process.execPath, "--input-type=module", "-e", source];
  // ulimit reckons in blocks of 512 bytes.
  const limited = ["sh", "-c", `ulimit -S -f ${Math.ceil((fileBytesMax ?? 0) / 512)}; exec "$@"`, "sh", ...command];
  const [program, ...words] = fileBytesMax === undefined ? command : limited;
  const child = spawn(program!, words, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return {
    line: async () => String((await lines.next()).value),
    kill: async () => {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      const rest: string[] = [];
      for (let next = await lines.next(); !next.done; next = await lines.next()) rest.push(next.value);
      return rest;
    },
  };
}
