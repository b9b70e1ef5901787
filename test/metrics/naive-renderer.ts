import { type NodeFamily, type RenderInput, type Sample, visibleSlots } from "../../src/metrics/families/family.ts";
import { NETWORK_FAMILIES } from "../../src/metrics/families/network-families.ts";
import { NODE_INFO } from "../../src/metrics/families/node-families.ts";
import { LineWriter } from "../../src/metrics/render/line-writer.ts";
import { nodeLabel } from "../../src/metrics/render/node-labels.ts";
import { computeVisibility, type NetworkExposition, NetworkRenderer } from "../../src/metrics/render/renderer.ts";
import { type Format, familyHeader, seriesText, valueText } from "../../src/metrics/text-format.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { renderInput } from "./snapshot-fixtures.ts";

/** Renders a whole snapshot without interruption. */
export function render(renderer: NetworkRenderer, input: RenderInput): NetworkExposition {
  const steps = renderer.refresh(input);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The bytes of an exposition as text. */
export function textOf(exposition: NetworkExposition, format: Format = "text"): string {
  const writer = new LineWriter();
  return Buffer.concat(
    exposition.chunks[format].map((chunk) => Buffer.from(chunk.render(exposition.source!, writer))),
  ).toString();
}

type RenderContext = Parameters<typeof renderInput>[1];

/** The text page of a snapshot. */
export const renderPage = (snapshot: Partial<Snapshot>, around: RenderContext = {}): string =>
  textOf(render(new NetworkRenderer(), renderInput(snapshot, around)));

/** Its lines that begin with `prefix`. */
export const renderedLines = (prefix: string, snapshot: Partial<Snapshot>, around: RenderContext = {}): string[] =>
  renderPage(snapshot, around)
    .split("\n")
    .filter((line) => line.startsWith(prefix));

/** Renders the expected exposition from scratch, line by line, by joining strings. */
export function referenceRender(input: RenderInput, format: Format = "text"): string {
  return NETWORK_FAMILIES.filter(({ name }) => !input.options.deny.has(name))
    .map((family) => {
      const samples = "fill" in family ? nodeSamples(family, input) : [...family.samples(input)];
      const decimals = "fill" in family ? family.decimals : undefined;
      const lines = samples
        .filter(({ value }) => !Number.isNaN(value))
        .map(({ suffix = "", labels, value }) => {
          const series = seriesText(family.name + suffix, labels);
          return `${series} ${valueText(value, decimals)}\n`;
        });
      return lines.length === 0 ? "" : familyHeader(family, format) + lines.join("");
    })
    .join("");
}

function nodeSamples(family: NodeFamily, input: RenderInput): Sample[] {
  const { fleet, sessions } = input.snapshot;
  const ids = family.source === "sessions" ? (sessions?.nodes.ids ?? []) : fleet.ids;
  const visible = visibleSlots(computeVisibility(input), family);
  return ids.flatMap((id, slot) => {
    const values = new Float64Array(family.splitBy?.values.length ?? 1);
    if (visible[slot] === 1) family.fill(input, slot, slot + 1, values);
    else values.fill(Number.NaN);
    const nodeLabelValues = family === NODE_INFO ? input.options.nodeLabels : [];
    const described = Object.fromEntries(nodeLabelValues.map((label) => [label, nodeLabel(fleet, label, slot)]));
    return Array.from(values, (value, line) => {
      const split = family.splitBy === undefined ? {} : { [family.splitBy.label]: family.splitBy.values[line]! };
      return { labels: { node_id: id, ...described, ...split }, value };
    });
  });
}
