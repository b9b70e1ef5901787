import { eachInSteps } from "../../base/steps.ts";
import type { AggregateFamily } from "../families/family.ts";
import { seriesText, valueText } from "../text-format.ts";
import { CHUNK_LINES_MAX, type Chunk, type FamilyRenderer, storedChunk } from "./chunk.ts";

/**
 * Creates a renderer of one aggregate family. Its few lines are rendered each time, and chunks whose bytes are
 * unchanged are kept.
 */
export function createAggregateRenderer(family: AggregateFamily): FamilyRenderer {
  const chunks: { readonly bytes: Buffer; readonly chunk: Chunk }[] = [];
  let series = 0;

  function put(index: number, text: string): void {
    const bytes = Buffer.from(text);
    if (chunks[index]?.bytes.equals(bytes) !== true) chunks[index] = { bytes, chunk: storedChunk(bytes) };
  }

  return {
    *refresh({ input }) {
      let count = 0;
      let index = 0;
      let text = "";
      yield* eachInSteps(family.samples(input), ({ suffix = "", labels, value }) => {
        if (Number.isNaN(value)) return;
        text += `${seriesText(family.name + suffix, labels)} ${valueText(value)}\n`;
        if (++count % CHUNK_LINES_MAX > 0) return;
        put(index++, text);
        text = "";
      });
      if (text !== "") put(index++, text);
      chunks.length = index;
      series = count;
    },
    chunks: () => chunks.map(({ chunk }) => chunk),
    sampleCount: () => series,
  };
}
