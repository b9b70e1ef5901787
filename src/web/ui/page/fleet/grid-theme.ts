import { resolveColor } from "../dom.ts";
import { drawGlyph } from "./status-icon.ts";

/** Opacity of the background of icons of nodes that are not online. */
const TINT_ALPHA = 0.22;
/** Minimum size of cells whose icons can be recognized. Smaller ones are filled with the color of their status. */
const ICON_SIZE_MIN = 6;
/** Minimum size of cells whose icons have a margin. In smaller cells the icons have none. */
export const INSET_SIZE_MIN = 9;

/** The colors of the grid, and its icons drawn in them. */
export class GridTheme {
  #colors: Readonly<Record<string, string>> = {};
  #glyphs = new Map<string, ImageBitmap>();

  /**
   * Reads the colors from the style sheet, where the class of a name is `is-NAME`. Call it again when colors or cell
   * sizes change.
   */
  load(parent: HTMLElement, names: readonly string[]): void {
    this.#glyphs = new Map();
    this.#colors = Object.fromEntries(names.map((name) => [name, resolveColor(parent, { class: `is-${name}` })]));
  }

  color(name: string): string {
    return this.#colors[name] ?? "";
  }

  /** Returns the icon of a status, which is drawn once and copied afterwards, because copying a bitmap is fastest. */
  glyph(status: string, size: number): ImageBitmap {
    const known = this.#glyphs.get(status);
    if (known !== undefined) return known;
    const pixels = Math.max(1, Math.round(size * devicePixelRatio));
    const canvas = new OffscreenCanvas(pixels, pixels);
    const pen = canvas.getContext("2d")!;
    pen.scale(pixels / size, pixels / size);
    pen.fillStyle = pen.strokeStyle = this.color(status);
    if (status !== "online") {
      pen.globalAlpha = size < ICON_SIZE_MIN ? 1 : TINT_ALPHA;
      pen.fillRect(0, 0, size, size);
      pen.globalAlpha = 1;
    }
    const inset = status === "online" || size < INSET_SIZE_MIN ? 0 : size * 0.16;
    drawGlyph(pen, status, inset, inset, size - 2 * inset);
    const glyph = canvas.transferToImageBitmap();
    this.#glyphs.set(status, glyph);
    return glyph;
  }
}
