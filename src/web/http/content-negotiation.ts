import type { IncomingHttpHeaders } from "node:http";
import type { Format } from "../../metrics/text-format.ts";

/** Content type of each format. */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

const TEXT_MEDIA_RANGES = ["text/plain", "text/*", "*/*"] as const;

/**
 * Returns the format for an Accept header: OpenMetrics if the header names it, in version 1.0.0 or without one, and
 * with at least the quality of the text format. If both have the same quality, the first one is returned, or OpenMetrics
 * if only a wildcard accepts text. Otherwise returns text, even if it is not accepted.
 */
export function negotiateFormat(accept = "*/*"): Format {
  const choices = parseChoices(accept);
  const open = choices.find(
    ({ value, parameters }) => value === "application/openmetrics-text" && (parameters.version ?? "1.0.0") === "1.0.0",
  );
  if (open === undefined || open.quality === 0) return "text";
  const text = TEXT_MEDIA_RANGES.map((range) =>
    choices.find(({ value, parameters }) => value === range && (parameters.version ?? "0.0.4") === "0.0.4"),
  ).find((choice) => choice !== undefined);
  if (text === undefined || text.quality < open.quality) return "openmetrics";
  const isNamedFirst = text.value !== "text/plain" || choices.indexOf(open) < choices.indexOf(text);
  return text.quality === open.quality && isNamedFirst ? "openmetrics" : "text";
}

/** Returns whether the Accept-Encoding header prefers gzip to no coding, or accepts both equally. */
export function acceptsGzip({ "accept-encoding": acceptEncoding = "" }: IncomingHttpHeaders): boolean {
  const choices = parseChoices(acceptEncoding);
  const qualityOf = (coding: string) => choices.find(({ value }) => value === coding)?.quality;
  const gzip = qualityOf("gzip") ?? qualityOf("*") ?? 0;
  return gzip > 0 && gzip >= (qualityOf("identity") ?? 0);
}

/**
 * Parses comma-separated choices with parameters (RFC 9110, section 12.4.2). Their quality is from 0 (not accepted) to 1
 * (best). A quality that is not such a number counts as 0.
 */
function parseChoices(header: string) {
  return header.split(",").map((choice) => {
    const [value = "", ...pairs] = choice.split(";").map((part) => part.trim().toLowerCase());
    const parameters: Record<string, string> = Object.fromEntries(pairs.map(parameterOf));
    const quality = Number(parameters.q ?? 1);
    return { value, parameters, quality: quality >= 0 && quality <= 1 ? quality : 0 };
  });
}

/** Parses a parameter. Quotes around the value are removed (RFC 9110, section 5.6.6). */
function parameterOf(pair: string): readonly [name: string, value: string] {
  const [name = "", value = ""] = pair.split(/\s*=\s*/, 2);
  return [name, value.replace(/^"(.*)"$/, "$1")];
}
