import type { Path } from "./problem.ts";

/** Line and column, both from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** What is known of one value of a file, beside the value. */
export interface Mark {
  readonly path: Path;
  /** Where its key stands; null for an item of a list and for the document itself. */
  readonly key: Place | null;
  readonly place: Place;
  readonly kind: "mapping" | "list" | "scalar";
  /** How it reads in a message. */
  readonly found: string;
  /** Environment variables that went into it. */
  readonly variables: readonly string[];
}

/** Marks by {@link markKey} of their path. */
export type Marks = ReadonlyMap<string, Mark>;

/** The key of a path in a map. */
export const markKey = (path: Path): string => JSON.stringify(path);
