import type { Path } from "../diagnostics/problem.ts";

/** Line, and column in characters, both counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Position and text of one value in a file. */
export interface Mark {
  readonly path: Path;
  /** Position of its key, or null for a list item and for the document. */
  readonly key: Position | null;
  readonly position: Position;
  readonly kind: "mapping" | "list" | "scalar";
  /** The value as shown in messages. */
  readonly found: string;
  /** Environment variables in it. */
  readonly variables: readonly string[];
  /** Returns the position of one of its characters. Absent if it is not text, or if a `${` in it was replaced. */
  positionAt?(index: number): Position;
}

/** Marks by {@link markKey} of their path. */
export type Marks = ReadonlyMap<string, Mark>;

/** Returns the key of a path in {@link Marks}. */
export const markKey = (path: Path): string => JSON.stringify(path);

/** Returns the position of a value. If the value is absent, this is the position of the nearest section around it. */
export function positionIn(marks: Marks, path: Path): Position {
  const mark = marks.get(markKey(path));
  if (mark !== undefined) return mark.position;
  for (let length = path.length - 1; length >= 0; length -= 1) {
    const around = marks.get(markKey(path.slice(0, length)));
    if (around !== undefined) return around.key ?? around.position;
  }
  return { line: 1, column: 1 };
}

/** Returns the value at a path of a document, or undefined if there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  let here = value;
  for (const step of path) here = (here as Record<string | number, unknown> | null | undefined)?.[step];
  return here;
}
