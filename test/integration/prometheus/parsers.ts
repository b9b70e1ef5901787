import { requireProgram, runProgram } from "../process.ts";

/** A sample as a reference parser reads it: name, labels, value as text. */
export type ParsedSample = readonly [name: string, labels: Readonly<Record<string, string>>, value: string];

const script = (module: string) => `
import json, sys
from ${module} import text_string_to_metric_families
text = sys.stdin.buffer.read().decode()
print(json.dumps([[s.name, s.labels, repr(float(s.value))] for f in text_string_to_metric_families(text) for s in f.samples]))
`;

const parse = async (module: string, body: string): Promise<readonly ParsedSample[]> =>
  JSON.parse(await runProgram(python(), ["-c", script(module)], body)) as readonly ParsedSample[];

/** Parses the text format with the Python client. Throws if it rejects the page. */
export const textSamples = (body: string) => parse("prometheus_client.parser", body);

/** Parses OpenMetrics with the strict parser of the Python client. Throws if it rejects the page. */
export const openMetricsSamples = (body: string) => parse("prometheus_client.openmetrics.parser", body);

/** Returns Debian's Python, which is the one that sees Debian's package of the client. */
function python(): string {
  requireProgram("/usr/lib/python3/dist-packages/prometheus_client/__init__.py", "python3-prometheus-client");
  return requireProgram("/usr/bin/python3", "python3");
}
