import { createElement, setAttributes } from "../dom.ts";

/** A shape in a box of 10 by 10. */
interface GlyphShape {
  readonly path: string;
  /** Width of the line that draws it, or 0 if it is filled. */
  readonly line: number;
}

/** Every status has its own shape, so that color is not the only difference. */
const SHAPES: Readonly<Record<string, GlyphShape>> = {
  online: { path: "M1 0h8a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1h-8a1 1 0 0 1-1-1v-8a1 1 0 0 1 1-1z", line: 0 },
  offline: { path: "M1.5 1.5L8.5 8.5M8.5 1.5L1.5 8.5", line: 2.6 },
  quarantined: { path: "M5 0L10 5L5 10L0 5z", line: 0 },
  rebooting: { path: "M5 .5L10 9.5H0z", line: 0 },
  maintenance: { path: "M1.2 1.2H8.8V8.8H1.2z", line: 2.2 },
  unknown: { path: "M5 2.2A2.8 2.8 0 1 1 5 7.8A2.8 2.8 0 1 1 5 2.2z", line: 0 },
};

const shapeOf = (status: string): GlyphShape => SHAPES[status] ?? SHAPES.unknown!;
const paths = new Map<string, Path2D>();

/** Draws the icon of a status into a square of a canvas. */
export function drawGlyph(
  context: OffscreenCanvasRenderingContext2D,
  status: string,
  x: number,
  y: number,
  size: number,
): void {
  const shape = shapeOf(status);
  const path = paths.get(status) ?? new Path2D(shape.path);
  paths.set(status, path);
  context.save();
  context.translate(x, y);
  context.scale(size / 10, size / 10);
  if (shape.line === 0) context.fill(path);
  else {
    context.lineWidth = shape.line;
    context.stroke(path);
  }
  context.restore();
}

/** Creates the same icon for the text of the page. */
export function glyphElement(status: string): SVGSVGElement {
  const { path, line } = shapeOf(status);
  const [svg, shape] = [createSvg("svg"), createSvg("path")];
  setAttributes(svg, { viewBox: "0 0 10 10", class: `glyph is-${status}`, "aria-hidden": "true" });
  setAttributes(shape, line === 0 ? { fill: "currentColor" } : { fill: "none", stroke: "currentColor" });
  setAttributes(shape, { d: path, "stroke-width": line });
  svg.append(shape);
  return svg;
}

const createSvg = <K extends keyof SVGElementTagNameMap>(tag: K): SVGElementTagNameMap[K] =>
  document.createElementNS("http://www.w3.org/2000/svg", tag);

/** Creates the ring that the grid draws around nodes in a remediation state. */
export const ringElement = (state: string): HTMLElement =>
  createElement(`i.ring.is-ring-${state}`, { "aria-hidden": "true" });
