/** Numbers per page, 32 KiB: copying a page is cheap, and a hundred thousand numbers have 25 pages. */
const PAGE_BITS = 12;
const PAGE_LENGTH = 1 << PAGE_BITS;
const PAGE_MASK = PAGE_LENGTH - 1;
/** The last page begins with this length and doubles, so that a small fleet has short columns. */
const PAGE_LENGTH_MIN = 64;

/** An immutable column of numbers. Successive copies of a {@link WritableNumberColumn} share the pages that did not change. */
export class NumberColumn implements Iterable<number> {
  readonly length: number;
  readonly #pages: readonly Float64Array[];

  /** Every page except the last has the full length. */
  constructor(pages: readonly Float64Array[], length: number) {
    this.#pages = pages;
    this.length = length;
  }

  static from(numbers: Iterable<number>): NumberColumn {
    const values = Float64Array.from(numbers);
    const count = Math.ceil(values.length / PAGE_LENGTH);
    const pages = Array.from({ length: count }, (_, page) =>
      values.subarray(page * PAGE_LENGTH, (page + 1) * PAGE_LENGTH),
    );
    return new NumberColumn(pages, values.length);
  }

  /** Returns the number at `index`, or NaN if there is none. */
  at(index: number): number {
    return this.#pages[index >>> PAGE_BITS]?.[index & PAGE_MASK] ?? Number.NaN;
  }

  /** Copies the numbers from `start` to before `end`, which must not be beyond the column's, to the start of `out`. */
  copyTo(out: Float64Array, start: number, end: number): void {
    for (let from = start; from < end; ) {
      const next = Math.min(end, (from | PAGE_MASK) + 1);
      const first = from & PAGE_MASK;
      out.set(this.#pages[from >>> PAGE_BITS]!.subarray(first, first + next - from), from - start);
      from = next;
    }
  }

  /** Sets `marks[index]` to 1 for each index at which the columns differ. Takes no time for the pages that they share. */
  markDifferences(other: NumberColumn, marks: Uint8Array): void {
    for (const [index, page] of this.#pages.entries()) {
      const otherPage = other.#pages[index];
      if (page !== otherPage) markPage(page, otherPage, marks.subarray(index * PAGE_LENGTH));
    }
  }

  /** Returns a copy in one array, which is several times as fast to read as the column. */
  toArray(): Float64Array {
    const out = new Float64Array(this.length);
    this.copyTo(out, 0, this.length);
    return out;
  }

  /**
   * Returns whether the columns have the same numbers from `start` to before `end`. Takes no time for the pages that
   * they share.
   */
  equals(other: NumberColumn, start: number, end: number): boolean {
    for (let from = start; from < end; ) {
      const to = Math.min(end, (from | PAGE_MASK) + 1);
      const page = this.#pages[from >>> PAGE_BITS];
      const otherPage = other.#pages[from >>> PAGE_BITS];
      if (page !== otherPage && !areEqual(page, otherPage, from & PAGE_MASK, to - from)) return false;
      from = to;
    }
    return true;
  }

  *[Symbol.iterator](): Generator<number, void> {
    for (let index = 0; index < this.length; index++) yield this.at(index);
  }
}

function markPage(page: Float64Array, other: Float64Array | undefined, marks: Uint8Array): void {
  for (let index = 0; index < page.length; index++)
    if (!Object.is(page[index], other?.[index] ?? Number.NaN)) marks[index] = 1;
}

function areEqual(page: Float64Array | undefined, other: Float64Array | undefined, first: number, count: number) {
  if (page === undefined || other === undefined) return false;
  for (let index = first; index < first + count; index++) {
    const [one, two] = [page[index]!, other[index]!];
    if (one !== two && !(Number.isNaN(one) && Number.isNaN(two))) return false;
  }
  return true;
}

/** A column of numbers that is changed number by number, and copied from time to time. */
export class WritableNumberColumn {
  readonly #pages: Float64Array[] = [];
  /** Whether a copy has the page, which must not be written to any more. */
  readonly #isShared: boolean[] = [];
  #length = 0;
  /** The last copy, or null if the column has changed since. */
  #copy: NumberColumn | null = null;

  /** Returns the number at `index`, which must be below the length. */
  at(index: number): number {
    return this.#pages[index >>> PAGE_BITS]![index & PAGE_MASK]!;
  }

  /** Sets the number at `index`, which must be below the length. */
  set(index: number, value: number): void {
    const page = index >>> PAGE_BITS;
    const place = index & PAGE_MASK;
    if (Object.is(this.#pages[page]![place], value)) return;
    this.#writablePage(page)[place] = value;
  }

  /** Sets all numbers to NaN. */
  clear(): void {
    for (const page of this.#pages.keys()) this.#writablePage(page).fill(Number.NaN);
  }

  /** Adds NaN at the end. */
  grow(): void {
    const page = this.#length >>> PAGE_BITS;
    const known = this.#pages[page] ?? new Float64Array(0);
    if ((this.#length & PAGE_MASK) === known.length || known.length === 0) {
      const longer = new Float64Array(Math.min(PAGE_LENGTH, Math.max(PAGE_LENGTH_MIN, 2 * known.length)));
      longer.fill(Number.NaN).set(known);
      this.#pages[page] = longer;
      this.#isShared[page] = false;
    }
    this.#length++;
    this.#copy = null;
  }

  /** Returns an immutable copy. A later change copies the page that it is on. */
  copy(): NumberColumn {
    if (this.#copy !== null) return this.#copy;
    this.#isShared.fill(true);
    this.#copy = new NumberColumn(this.#pages.slice(), this.#length);
    return this.#copy;
  }

  #writablePage(page: number): Float64Array {
    this.#copy = null;
    if (this.#isShared[page]) {
      this.#pages[page] = this.#pages[page]!.slice();
      this.#isShared[page] = false;
    }
    return this.#pages[page]!;
  }
}
