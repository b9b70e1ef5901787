import { expect, test } from "vitest";
import { familyNames } from "../../src/metrics/families/network-families.ts";
import { createRenderer } from "../../src/metrics/render/renderer.ts";
import { trailer } from "../../src/metrics/text-format.ts";
import { fullInput, fullWarden, openMetricsSamples, promtoolFindings } from "./sample-page.ts";
import { render, textOf } from "./naive-renderer.ts";

const exposition = render(createRenderer(), fullInput());

test("the page tries every family", () => {
  const shown = textOf(exposition).match(/(?<=^# TYPE )\S+/gm);
  expect(shown).toEqual([...familyNames()]);
});

test("promtool finds nothing in the text format", async () => {
  expect(promtoolFindings(textOf(exposition) + (await fullWarden().render("text")))).toBe("");
});

test("the strict parser of Prometheus' Python client takes the OpenMetrics format, every sample of it", async () => {
  const page = textOf(exposition, "openmetrics") + (await fullWarden().render("openmetrics")) + trailer("openmetrics");
  expect(openMetricsSamples(page)).toBe(page.match(/^[^#\n]/gm)?.length);
});
