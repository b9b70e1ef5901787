import type { AggregateFamily } from "../families/family.ts";
import { seriesText, valueText } from "../text-format.ts";
import { type Chunk, createChunk, release } from "./chunk.ts";
import { SEGMENT_LINES_MAX } from "./render-buffers.ts";
import type { FamilyRenderer } from "./render-frame.ts";

/**
 * Creates a renderer of one aggregate family. Its few lines are rendered each time, and chunks whose bytes are
 * unchanged are kept.
 */
export function createAggregateRenderer(family: AggregateFamily): FamilyRenderer {
  const chunks: Chunk[] = [];
  let series = 0;

  function put(index: number, text: string): void {
    const bytes = Buffer.from(text);
    const old = chunks[index];
    if (old !== undefined && bytes.equals(old.bytes)) return;
    chunks[index] = createChunk(bytes);
    if (old !== undefined) release(old);
  }

  return {
    *refresh({ input }) {
      let count = 0;
      let index = 0;
      let text = "";
      for (const { suffix = "", labels, value } of family.samples(input)) {
        if (Number.isNaN(value)) continue;
        text += `${seriesText(family.name + suffix, labels)} ${valueText(value)}\n`;
        if (++count % SEGMENT_LINES_MAX > 0) continue;
        put(index++, text);
        text = "";
        yield;
      }
      if (text !== "") put(index++, text);
      for (const unused of chunks.splice(index)) release(unused);
      series = count;
    },
    chunks: () => chunks,
    sampleCount: () => series,
    release: () => chunks.splice(0).forEach(release),
  };
}
