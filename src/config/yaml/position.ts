import type { Path } from "../diagnostics/problem.ts";

/** Line and column, both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** What is known of one value of a file, beside the value. */
export interface Mark {
  readonly path: Path;
  /** Where its key stands; null for an item of a list and for the document itself. */
  readonly key: Position | null;
  readonly position: Position;
  readonly kind: "mapping" | "list" | "scalar";
  /** How it reads in a message. */
  readonly found: string;
  /** Environment variables that went into it. */
  readonly variables: readonly string[];
  /** Where a character of it stands; absent where it is no text. */
  positionAt?(index: number): Position;
}

/** Marks by {@link markKey} of their path. */
export type Marks = ReadonlyMap<string, Mark>;

/** The key of a path in a map. */
export const markKey = (path: Path): string => JSON.stringify(path);

/** Where a value stands; one that was left out stands where the nearest thing around it does. */
export function positionIn(marks: Marks, path: Path): Position {
  const mark = marks.get(markKey(path));
  if (mark !== undefined) return mark.position;
  for (let length = path.length - 1; length >= 0; length -= 1) {
    const around = marks.get(markKey(path.slice(0, length)));
    if (around !== undefined) return around.key ?? around.position;
  }
  return { line: 1, column: 1 };
}
