/** A page has 2^12 numbers (32 KiB): copying one is cheap, and 100,000 numbers take 25 pages. */
const PAGE_BITS = 12;
const PAGE_LENGTH = 1 << PAGE_BITS;
const PAGE_MASK = PAGE_LENGTH - 1;
/** The initial length of a page. It doubles when the page is full, so that the columns of a small fleet are short. */
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

  /** Copies the numbers from `start` up to but not including `end`, which must not exceed the length, to the start of `out`. */
  copyTo(out: Float64Array, start: number, end: number): void {
    for (let from = start; from < end; ) {
      const next = Math.min(end, (from | PAGE_MASK) + 1);
      const first = from & PAGE_MASK;
      out.set(this.#pages[from >>> PAGE_BITS]!.subarray(first, first + next - from), from - start);
      from = next;
    }
  }

  /**
   * Sets `marks[index]` to 1 for each index of this column at which the columns differ: 0 and -0 do, NaN and NaN don't.
   * Shared pages are skipped.
   */
  markDifferences(other: NumberColumn, marks: Uint8Array): void {
    for (const [index, page] of this.#pages.entries()) {
      const otherPage = other.#pages[index];
      if (page !== otherPage) markPage(page, otherPage, marks.subarray(index * PAGE_LENGTH));
    }
  }

  /** Sets `marks[index]` to 1 for each index at which the number is at least `min`. */
  markAtLeast(min: number, marks: Uint8Array): void {
    for (const [page, numbers] of this.#pages.entries()) {
      const pageMarks = marks.subarray(page * PAGE_LENGTH);
      for (let index = 0; index < numbers.length; index++) if (numbers[index]! >= min) pageMarks[index] = 1;
    }
  }

  /** Returns a copy in one array, which is several times as fast to read as the column. */
  toArray(): Float64Array {
    const out = new Float64Array(this.length);
    this.copyTo(out, 0, this.length);
    return out;
  }

  /**
   * Returns whether the columns have the same numbers from `start` up to but not including `end`: 0 equals -0, and NaN
   * equals NaN. Shared pages are skipped.
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
  /** For each page, whether a copy shares it. A shared page must not be written to. */
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
    const offset = index & PAGE_MASK;
    if (Object.is(this.#pages[page]![offset], value)) return;
    this.#writablePage(page)[offset] = value;
  }

  /** Sets all numbers to NaN. */
  clear(): void {
    for (const page of this.#pages.keys()) this.#writablePage(page).fill(Number.NaN);
  }

  /** Adds NaN at the end. */
  grow(): void {
    const index = this.#length >>> PAGE_BITS;
    const page = this.#pages[index];
    if (page === undefined || page.length === (this.#length & PAGE_MASK)) {
      const longer = new Float64Array(page === undefined ? PAGE_LENGTH_MIN : 2 * page.length).fill(Number.NaN);
      if (page !== undefined) longer.set(page);
      this.#pages[index] = longer;
      this.#isShared[index] = false;
    }
    this.#length++;
    this.#copy = null;
  }

  /** Returns an immutable copy. A later change first copies the page that it affects. */
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
