/** Longest word that is compared. A longer one is not a misspelled key, and the comparison takes quadratic time. */
const WORD_LENGTH_MAX = 100;

/**
 * Returns the candidate closest to `word`, or null if none is close. Close means that at most a third of its letters,
 * or one, are inserted, missing, replaced or swapped with the next one. Case is ignored, and `-` counts as `_`.
 */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  if (word.length > WORD_LENGTH_MAX) return null;
  let best: string | null = null;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(normalized(word), normalized(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

const normalized = (word: string): string => word.toLowerCase().replaceAll("-", "_");

/** Returns the edit distance in which a swap of adjacent letters counts as one: optimal string alignment. */
function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      const swaps = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const swapped = swaps ? beforePrevious[column - 2]! + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, previous[column]! + 1, current[column - 1]! + 1));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[to.length]!;
}
