/** The remaining causes, and the number of tries. */
export interface ShrinkResult {
  readonly remaining: readonly string[];
  readonly tries: number;
}

/**
 * Removes causes from a list while the remaining ones still reproduce the failure (delta debugging: first halves, then
 * smaller parts), with at most `triesMax` tries.
 */
export async function shrinkCauses(
  causes: readonly string[],
  reproduces: (remaining: readonly string[]) => Promise<boolean>,
  triesMax: number,
): Promise<ShrinkResult> {
  let remaining = causes;
  let parts = 2;
  let tries = 0;
  while (remaining.length > 0 && tries < triesMax) {
    const size = Math.ceil(remaining.length / parts);
    let isSmaller = false;
    for (let from = 0; from < remaining.length && tries < triesMax; from += size) {
      const rest = remaining.toSpliced(from, size);
      tries++;
      if (!(await reproduces(rest))) continue;
      remaining = rest;
      isSmaller = true;
      break;
    }
    if (isSmaller) parts = Math.max(2, parts - 1);
    else if (size === 1) break;
    else parts = Math.min(remaining.length, parts * 2);
  }
  return { remaining, tries };
}
