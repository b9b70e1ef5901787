import type { Exposition } from "../../src/metrics/render/exposition.ts";
import { FAMILIES } from "../../src/metrics/families/network-families.ts";
import type { NodeFamily, RenderInput, Sample } from "../../src/metrics/families/family.ts";
import { NODE_INFO } from "../../src/metrics/families/node-families.ts";
import { nodeLabel, seePresence } from "../../src/metrics/render/node-visibility.ts";
import { createRenderer, type Renderer } from "../../src/metrics/render/renderer.ts";
import { type Format, familyHeader, seriesText, valueText } from "../../src/metrics/text-format.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { inputOf } from "./snapshot-fixtures.ts";

/** Renders a snapshot to its end, at once. */
export function render(renderer: Renderer, input: RenderInput): Exposition {
  const steps = renderer.refresh(input);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The bytes of an exposition as text. */
export const textOf = (exposition: Exposition, format: Format = "text"): string =>
  Buffer.concat(exposition.pieces[format].map(({ bytes }) => bytes)).toString();

type Around = Parameters<typeof inputOf>[1];

/** The text page of a snapshot. */
export const pageOf = (snapshot: Partial<Snapshot>, around: Around = {}): string =>
  textOf(render(createRenderer(), inputOf(snapshot, around)));

/** Its lines that begin with `prefix`. */
export const linesOf = (prefix: string, snapshot: Partial<Snapshot>, around: Around = {}): string[] =>
  pageOf(snapshot, around)
    .split("\n")
    .filter((line) => line.startsWith(prefix));

/** What the renderer is to give: the same rows from nothing, line by line, strings joined. */
export function renderPlainly(input: RenderInput, format: Format = "text"): string {
  return FAMILIES.filter(({ name }) => !input.options.deny.has(name))
    .map((family) => {
      const samples = "fill" in family ? nodeSamples(family, input) : [...family.samples(input)];
      const lines = samples
        .filter(({ value }) => !Number.isNaN(value))
        .map(({ suffix = "", labels, value }) => `${seriesText(family.name + suffix, labels)} ${valueText(value)}\n`);
      return lines.length === 0 ? "" : familyHeader(family, format) + lines.join("");
    })
    .join("");
}

function nodeSamples(family: NodeFamily, input: RenderInput): Sample[] {
  const { fleet, sessions } = input.snapshot;
  const ids = family.roster === "fleet" ? fleet.ids : (sessions?.nodes.ids ?? []);
  const presence = seePresence(input);
  return ids.flatMap((id, slot) => {
    const values = new Float64Array(family.split?.values.length ?? 1);
    family.fill(input, presence, slot, slot + 1, values);
    const told = family === NODE_INFO ? input.options.nodeLabels : [];
    const described = Object.fromEntries(told.map((label) => [label, nodeLabel(fleet, label, slot)]));
    return Array.from(values, (value, line) => {
      const split = family.split === null ? {} : { [family.split.label]: family.split.values[line]! };
      return { labels: { node_id: id, ...described, ...split }, value };
    });
  });
}
