import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { type EpochMs, parseIsoTime } from "../../model/time.ts";

/**
 * Parses an ISO 8601 timestamp with date and time. Returns NaN if it is invalid. Without a zone it is UTC. The form
 * that the service usually sends is parsed here, three times as fast as by {@link parseIsoTime}, which would take a third
 * of the time of decoding a session. Other forms go there.
 */
export function parseTimestamp(iso: string): EpochMs {
  const commonForm = parseCommonTimestamp(iso);
  if (!Number.isNaN(commonForm)) return commonForm;
  if (iso.charCodeAt(10) !== LETTER_T) return Number.NaN;
  const zoned = iso.endsWith("Z") || iso.includes("+", 11) || iso.includes("-", 11);
  return parseIsoTime(zoned ? iso : `${iso}Z`);
}

const [LETTER_T, LETTER_Z, COLON, POINT, ZERO] = [0x54, 0x5a, 0x3a, 0x2e, 0x30];

/** The last date that was parsed, with its T, and its midnight. Most timestamps of a list are of the same date. */
let last = { date: "none", midnight: Number.NaN };

/** Parses `YYYY-MM-DDTHH:MM:SSZ`, with or without milliseconds. Returns NaN for any other form. */
function parseCommonTimestamp(iso: string): EpochMs {
  const hasMs = iso.length === 24;
  if (!hasMs && iso.length !== 20) return Number.NaN;
  const hasSeparators =
    iso.charCodeAt(10) === LETTER_T &&
    iso.charCodeAt(13) === COLON &&
    iso.charCodeAt(16) === COLON &&
    iso.charCodeAt(iso.length - 1) === LETTER_Z &&
    (!hasMs || iso.charCodeAt(19) === POINT);
  if (!hasSeparators) return Number.NaN;
  if (!iso.startsWith(last.date)) {
    const date = iso.slice(0, 11);
    last = { date, midnight: parseIsoTime(`${date}00:00:00Z`) };
  }
  const [hour, minute, second] = [twoDigitsAt(iso, 11), twoDigitsAt(iso, 14), twoDigitsAt(iso, 17)];
  const ms = hasMs ? twoDigitsAt(iso, 20) * 10 + digitAt(iso, 22) : 0;
  if (!(hour <= 23 && minute <= 59 && second <= 59 && ms >= 0)) return Number.NaN;
  return last.midnight + hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + ms;
}

/** Returns the digit at an index, or NaN if it is not a digit, which makes all sums NaN and all comparisons false. */
function digitAt(text: string, index: number): number {
  const value = text.charCodeAt(index) - ZERO;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

const twoDigitsAt = (text: string, index: number): number => digitAt(text, index) * 10 + digitAt(text, index + 1);
