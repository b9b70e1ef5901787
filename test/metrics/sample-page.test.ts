import { expect, test } from "vitest";
import { networkFamilyNames } from "../../src/metrics/families/network-families.ts";
import { NetworkRenderer } from "../../src/metrics/render/renderer.ts";
import { endMarker } from "../../src/metrics/text-format.ts";
import { render, textOf } from "./naive-renderer.ts";
import { fullDaemonMetrics, fullInput, openMetricsSamples, promtoolFindings } from "./sample-page.ts";

const exposition = render(new NetworkRenderer(), fullInput());

test("the sample page has every family", () => {
  const shown = textOf(exposition).match(/(?<=^# TYPE )\S+/gm);
  expect(shown).toEqual([...networkFamilyNames()]);
});

test("promtool accepts the text format", async () => {
  expect(promtoolFindings(textOf(exposition) + (await fullDaemonMetrics().render("text")))).toBe("");
});

test("the OpenMetrics parser of Prometheus' Python client reads every sample", async () => {
  const page =
    textOf(exposition, "openmetrics") + (await fullDaemonMetrics().render("openmetrics")) + endMarker("openmetrics");
  expect(openMetricsSamples(page)).toBe(page.match(/^[^#\n]/gm)?.length);
});
