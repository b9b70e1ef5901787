import { InvalidArgumentError } from "commander";
import { parseDuration } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { parseTime } from "./moment.ts";

/** Where `run` and `check` look for a configuration. */
export const DEFAULT_CONFIG = "/etc/proxywarden/proxywarden.yaml";
/** Where a daemon with the default configuration listens. */
export const DEFAULT_URL = "http://127.0.0.1:9713";

/** Reads an option as a whole number within bounds; a usage error names them. */
export const wholeNumberParser = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < min || value > max) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
};

/** Reads how much faster than real a simulation's time runs. */
export const parseSpeed = (text: string) => {
  const value = Number(text);
  if (!(value >= 0.1 && value <= 1_000)) throw new InvalidArgumentError("It must be a number from 0.1 to 1000.");
  return value;
};

/** Reads a duration, in milliseconds. */
export const parseDurationOption = (text: string) => {
  const read = parseDuration(text);
  if (!read.ok) throw new InvalidArgumentError(`Expected: ${read.error}.`);
  return read.value;
};

/** Reads a moment of the past. */
export const parseTimeOption = (text: string): EpochMs => {
  const read = parseTime(text, Date.now());
  if (!read.ok) throw new InvalidArgumentError(`Expected: ${read.error}.`);
  return read.value;
};

/** Reads the format in which a command prints. */
export const parseOutputFormat = (text: string) => {
  if (text !== "text" && text !== "json") throw new InvalidArgumentError("It must be text or json.");
  return text;
};

/** Reads the URL of a daemon. */
export const parseDaemonUrl = (text: string) => {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new InvalidArgumentError(`It must be an http or https URL, such as ${DEFAULT_URL}.`);
  }
  return text;
};
