import type { FactStore, Log } from "../model/ports.ts";

/** What is logged when a kind of access begins to fail. */
const FAILURES = {
  read: "fact not readable; planning continues without it",
  write: "fact not stored; after a restart it is unknown",
} as const;

/**
 * Returns facts that never throw, because collectors must continue while the state can't be read or written. A fact
 * that can't be read is null, and one that can't be stored is lost. A failure is logged when it begins, not at each
 * access.
 */
export function createCollectorFacts(facts: FactStore, log: Log): FactStore {
  const isFailing = { read: false, write: false };

  function attempt<T>(kind: keyof typeof FAILURES, access: () => T): T | null {
    try {
      const result = access();
      isFailing[kind] = false;
      return result;
    } catch (error) {
      if (!isFailing[kind]) log.error({ err: error }, FAILURES[kind]);
      isFailing[kind] = true;
      return null;
    }
  }

  return {
    read: (key) => attempt("read", () => facts.read(key)),
    write: (key, value) => void attempt("write", () => facts.write(key, value)),
  };
}
