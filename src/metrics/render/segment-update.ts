import { LINE_ADDED, LINE_REMOVED, type RenderBuffers, VALUE_RESIZED, VALUE_SAME_LENGTH } from "./render-buffers.ts";
import type { Segment } from "./segment.ts";

const LINE_FEED = 10;

/**
 * Writes the segment's next lines into `target`: the old ones with the changes on the bench worked in. The segment's
 * values and lengths follow. Values that keep their length wait until the run of old bytes around them was copied, and
 * are then written over: one copy serves as many lines as possible.
 */
export function spliceLines(
  segment: Segment,
  buffers: RenderBuffers,
  count: number,
  old: Uint8Array,
  target: Uint8Array,
): void {
  const { values, lengths, valueLengths } = segment;
  const { changes, numberWriter } = buffers;
  let from = 0;
  let to = 0;
  let labelsStart = 0;
  let pendingChange = 0;
  for (let change = 0; change < count; change++) {
    const line = changes.line[change]!;
    const kind = changes.kind[change]!;
    if (kind === VALUE_SAME_LENGTH) continue;

    const start = changes.start[change]!;
    const length = lengths[line]!;
    // A line whose value gets longer or shorter keeps its labels before it, and its line feed for the next run.
    const cut = kind === VALUE_RESIZED ? start + length - 1 - valueLengths[line]! : start;
    if (cut > from) {
      target.set(old.subarray(from, cut), to);
      overwriteValues(segment, buffers, target, pendingChange, change, to - from);
      to += cut - from;
    }
    from = kind === VALUE_RESIZED ? start + length - 1 : start + length;
    pendingChange = change + 1;
    values[line] = buffers.values[line]!;

    if (kind === LINE_REMOVED) {
      lengths[line] = 0;
      if (length > 0) segment.series--;
      continue;
    }
    const valueLength = changes.valueLength[change]!;
    if (kind === LINE_ADDED) {
      const labelsLength = changes.labelsLength[change]!;
      target.set(buffers.labels.subarray(labelsStart, labelsStart + labelsLength), to);
      labelsStart += labelsLength;
      to += labelsLength;
      lengths[line] = labelsLength + valueLength + 1;
      if (length === 0) segment.series++;
    } else {
      lengths[line] = length + valueLength - valueLengths[line]!;
    }
    valueLengths[line] = valueLength;
    to += valueLength;
    numberWriter.write(change, target, to);
    if (kind === LINE_ADDED) target[to++] = LINE_FEED;
  }
  if (from < old.length) target.set(old.subarray(from), to);
  overwriteValues(segment, buffers, target, pendingChange, count, to - from);
}

/**
 * Writes the values of the changes from `first` to before `last`, all of which kept their length, over the old ones,
 * `shift` bytes from where these were.
 */
export function overwriteValues(
  { values, lengths }: Segment,
  { values: next, changes, numberWriter }: RenderBuffers,
  bytes: Uint8Array,
  first: number,
  last: number,
  shift: number,
): void {
  for (let change = first; change < last; change++) {
    const line = changes.line[change]!;
    values[line] = next[line]!;
    numberWriter.write(change, bytes, changes.start[change]! + lengths[line]! - 1 + shift);
  }
}
