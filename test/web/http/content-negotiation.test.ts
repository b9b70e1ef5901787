import { expect, test } from "vitest";
import { acceptsGzip, negotiateFormat } from "../../../src/web/http/content-negotiation.ts";

test.each([
  [
    "Prometheus 2",
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "openmetrics",
  ],
  [
    "Prometheus 3",
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    "openmetrics",
  ],
  ["one that prefers text", "text/plain;version=0.0.4;q=0.6, application/openmetrics-text;version=1.0.0;q=0.5", "text"],
  ["one that names text first of equals", "text/plain, application/openmetrics-text", "text"],
  ["one that names OpenMetrics first of equals", "application/openmetrics-text, text/plain", "openmetrics"],
  ["one that takes anything, but names OpenMetrics", "*/*, application/openmetrics-text", "openmetrics"],
  ["one that knows only the draft of OpenMetrics", "application/openmetrics-text;version=0.0.1", "text"],
  ["one that refuses OpenMetrics", "application/openmetrics-text;q=0, */*", "text"],
  ["a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text"],
  ["curl", "*/*", "text"],
  ["one that wants a format that does not exist", "application/json", "text"],
  [
    "one with upper case and blanks",
    "Application/OpenMetrics-Text ; Version=1.0.0 ; Q=0.9 , text/plain;q=0.1",
    "openmetrics",
  ],
  ["one that quotes its version", 'application/openmetrics-text;version="1.0.0"', "openmetrics"],
  ["one with an invalid quality", "application/openmetrics-text;q=high", "text"],
  ["one that leaves it empty", "", "text"],
])("the Accept header of %s gets the right format", (_who, accept, format) => {
  expect(negotiateFormat(accept)).toBe(format);
});

test("no Accept header gets text", () => {
  expect(negotiateFormat(undefined)).toBe("text");
});

test.each([
  ["gzip", true],
  ["gzip, deflate, br, zstd", true],
  ["GZIP;q=0.5", true],
  ["*", true],
  ["gzip;q=0", false],
  ["*, gzip;q=0", false],
  ["gzip;q=0.5, identity", false],
  ["br", false],
  ["identity", false],
  ["", false],
])("Accept-Encoding: %s accepts gzip: %s", (acceptEncoding, gzip) => {
  expect(acceptsGzip({ "accept-encoding": acceptEncoding })).toBe(gzip);
});

test("no Accept-Encoding header gets no gzip", () => {
  expect(acceptsGzip({})).toBe(false);
});
