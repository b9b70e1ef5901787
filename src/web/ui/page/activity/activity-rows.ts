import type { Rows } from "../../../api/unknown-names.ts";
import { getJson } from "../api.ts";
import type { ViewState } from "../view-state.ts";
import { type ActivityLine, LINE_BY_KIND, type RowKind } from "./activity-lines.ts";

/** Maximum number of rows in one response. */
export const ROWS_PER_READ = 200;
/** Number of lines that are kept while new ones arrive, in addition to those that the user asked for. */
const LINES_KEPT = 1_000;

/** In the order in which lines of the same time are listed: an action follows its decision or its operator's answer. */
const KINDS = ["actions", "decisions", "orders"] as const satisfies readonly RowKind[];
/** The kinds of rows that are shown. */
type Choice = ViewState["activity"];

/** Reads the latest rows of a kind up to a time, newest first. Returns null if they can't be read now. */
export async function readRows(kind: RowKind, until: string | null): Promise<readonly ActivityLine[] | null> {
  const answer = await getJson<Rows<never>>(`${kind}?limit=${ROWS_PER_READ}${until === null ? "" : `&until=${until}`}`);
  return answer.ok ? answer.value.data.map(LINE_BY_KIND[kind]) : null;
}

/** Orders lines from the newest to the oldest. Those of the same time are ordered by kind and key, however they arrived. */
function compareLines(one: ActivityLine, other: ActivityLine): number {
  if (one.at !== other.at) return one.at < other.at ? 1 : -1;
  return KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind) || (one.key < other.key ? -1 : 1);
}

/** Rows of a kind that were read. All rows from `oldest` to the newest are known. */
interface RowStream {
  /** Time of the newest row of the last {@link ActivityRows.load}, or null if there was none. */
  newest: string | null;
  /** Time of the oldest row that was read, or null if there is none. */
  oldest: string | null;
  /** Whether there are no older rows. */
  isComplete: boolean;
}

/** The decisions, actions and operator commands that were read or arrived as events. */
export class ActivityRows {
  readonly #read: typeof readRows;
  readonly #lines = new Map<string, ActivityLine>();
  readonly #streams: Record<RowKind, RowStream> = {
    actions: { newest: null, oldest: null, isComplete: false },
    decisions: { newest: null, oldest: null, isComplete: false },
    orders: { newest: null, oldest: null, isComplete: false },
  };
  /** Keys of lines that arrived while rows were being read. The rows may hold older versions of them. */
  readonly #arrived = new Set<string>();
  #reads = 0;
  #keptMax = LINES_KEPT;

  constructor(read: typeof readRows) {
    this.#read = read;
  }

  /** Adds a line, or replaces an earlier one with the same key. */
  put(line: ActivityLine): void {
    this.#lines.set(line.key, line);
    if (this.#reads > 0) this.#arrived.add(line.key);
  }

  /**
   * Reads the latest rows. Older ones are kept unless rows between them and the latest may be missing. Returns false if
   * they can't be read now.
   */
  load(): Promise<boolean> {
    return this.#reading(async () => {
      const read = await Promise.all(KINDS.map(async (kind) => [kind, await this.#read(kind, null)] as const));
      if (read.some(([, lines]) => lines === null)) return false;
      for (const [kind, lines] of read) this.#addLatest(kind, lines!);
      return true;
    });
  }

  /** Reads older rows of the chosen kinds until there are enough, there are no more, or they can't be read. */
  async loadOlder(choice: Choice, isEnough: () => boolean): Promise<void> {
    await this.#reading(async () => {
      while (!isEnough()) {
        const since = this.#knownSince(choice);
        const due = this.#incompleteStreams(choice).filter(([, { oldest }]) => oldest === since);
        if (due.length === 0) return;
        const read = await Promise.all(due.map(async ([kind]) => [kind, await this.#read(kind, since)] as const));
        for (const [kind, lines] of read) {
          // Otherwise the latest rows were read in the meantime and did not reach back to these.
          if (lines !== null && this.#streams[kind].oldest === since) this.#addOlder(kind, lines);
        }
        if (read.some(([, lines]) => lines === null)) return;
      }
    });
  }

  /** Returns whether rows of all chosen kinds were read. */
  isKnown(choice: Choice): boolean {
    return this.#incompleteStreams(choice).every(([, { oldest }]) => oldest !== null);
  }

  /** Returns whether older rows of the chosen kinds can be read. */
  hasOlder(choice: Choice): boolean {
    return this.#incompleteStreams(choice).length > 0 && this.isKnown(choice);
  }

  /**
   * Returns the lines of the chosen kinds, newest first, back to the time since which all of them are known. An action
   * that was created before that time is included if it changed later.
   */
  lines(choice: Choice): readonly ActivityLine[] {
    const since = this.#knownSince(choice);
    return [...this.#lines.values()]
      .filter(({ kind, at }) => (choice === "all" || choice === kind) && at >= since)
      .sort(compareLines);
  }

  /** Drops the oldest lines while there are too many. They can be read again. */
  dropOldest(): void {
    if (this.#lines.size <= this.#keptMax) return;
    const newestFirst = [...this.#lines.values()].sort((one, other) => (one.at < other.at ? 1 : -1));
    const oldest = newestFirst[this.#keptMax - 1]!.at;
    for (const { key } of newestFirst.slice(this.#keptMax)) this.#lines.delete(key);
    for (const stream of Object.values(this.#streams)) {
      if (stream.oldest === null || stream.oldest < oldest) Object.assign(stream, { oldest, isComplete: false });
    }
  }

  async #reading<T>(work: () => Promise<T>): Promise<T> {
    this.#reads++;
    try {
      return await work();
    } finally {
      this.#reads--;
      if (this.#reads === 0) this.#arrived.clear();
    }
  }

  #addLatest(kind: RowKind, lines: readonly ActivityLine[]): void {
    const stream = this.#streams[kind];
    const oldest = lines.at(-1)?.storedAt ?? null;
    const isAll = lines.length < ROWS_PER_READ;
    if (isAll || stream.newest === null || oldest! > stream.newest) {
      for (const line of this.#lines.values()) {
        if (line.kind === kind && !this.#arrived.has(line.key)) this.#lines.delete(line.key);
      }
      Object.assign(stream, { oldest, isComplete: isAll });
    }
    stream.newest = lines[0]?.storedAt ?? null;
    this.#add(lines);
  }

  #addOlder(kind: RowKind, lines: readonly ActivityLine[]): void {
    const stream = this.#streams[kind];
    this.#add(lines);
    this.#keptMax += lines.length;
    stream.isComplete = lines.length < ROWS_PER_READ;
    const oldest = lines.at(-1)?.storedAt ?? stream.oldest;
    // If one instant has more rows than a response, the rest of them is skipped.
    const isStuck = oldest !== null && oldest === stream.oldest;
    stream.oldest = isStuck ? new Date(Date.parse(oldest) - 1).toISOString() : oldest;
  }

  #add(lines: readonly ActivityLine[]): void {
    for (const line of lines) if (!this.#arrived.has(line.key)) this.#lines.set(line.key, line);
  }

  /** Streams of the chosen kinds that have older rows, or were never read. */
  #incompleteStreams(choice: Choice): readonly (readonly [RowKind, RowStream])[] {
    const kinds: readonly RowKind[] = choice === "all" ? KINDS : [choice];
    return kinds.map((kind) => [kind, this.#streams[kind]] as const).filter(([, { isComplete }]) => !isComplete);
  }

  /** Returns the time since which all rows of the chosen kinds are known, or "" if all rows are. */
  #knownSince(choice: Choice): string {
    return this.#incompleteStreams(choice).reduce((since, [, { oldest }]) => {
      return oldest !== null && oldest > since ? oldest : since;
    }, "");
  }
}
