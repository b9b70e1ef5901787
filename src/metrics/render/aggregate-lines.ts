import type { AggregateFamily } from "../families/family.ts";
import { createPiece, type Piece, release } from "./chunk.ts";
import type { Run } from "./render-pass.ts";
import { seriesText, valueText } from "../text-format.ts";
import { SEGMENT_LINES_MAX } from "./render-buffers.ts";

/** The lines of one aggregate family. They are few and rendered anew each time; pieces that come out equal are kept. */
export function createAggregateRun(family: AggregateFamily): Run {
  const pieces: Piece[] = [];
  let series = 0;

  function put(index: number, text: string): void {
    const bytes = Buffer.from(text);
    const old = pieces[index];
    if (old !== undefined && bytes.equals(old.bytes)) return;
    pieces[index] = createPiece(bytes);
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
      for (const gone of pieces.splice(index)) release(gone);
      series = count;
    },
    pieces: () => pieces,
    series: () => series,
    drop: () => pieces.splice(0).forEach(release),
  };
}
