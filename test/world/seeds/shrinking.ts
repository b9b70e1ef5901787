/** What is left of a list of causes, and how often it was tried. */
export interface ShrinkResult {
  readonly kept: readonly string[];
  readonly tries: number;
}

/**
 * Drops causes from a list while what they cause still happens (delta debugging: halves first, then smaller and smaller
 * parts). Tries at most `triesMax` times.
 */
export async function shrinkCauses(
  causes: readonly string[],
  happens: (kept: readonly string[]) => Promise<boolean>,
  triesMax: number,
): Promise<ShrinkResult> {
  let kept = causes;
  let parts = 2;
  let tries = 0;
  while (kept.length > 0 && tries < triesMax) {
    const size = Math.ceil(kept.length / parts);
    let isSmaller = false;
    for (let from = 0; from < kept.length && tries < triesMax; from += size) {
      const rest = kept.toSpliced(from, size);
      tries++;
      if (!(await happens(rest))) continue;
      kept = rest;
      isSmaller = true;
      break;
    }
    if (isSmaller) parts = Math.max(2, parts - 1);
    else if (size === 1) break;
    else parts = Math.min(kept.length, parts * 2);
  }
  return { kept, tries };
}
