/** Formats numbers, durations and times. */
const grouped = new Intl.NumberFormat("en-US");

/** Formats a whole number with thousands separators, or as a dash if it is unknown. */
export const formatCount = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : grouped.format(Math.round(value));

/** Formats a share as a percentage that is never rounded up to 100 %. */
export function formatPercent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  return `${(Math.floor(share * 1_000 + 1e-9) / 10).toFixed(1)} %`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** Formats a duration in its two largest units, such as `4m 10s`. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(seconds < 1 ? 1 : 0)}s`;
  let rest = Math.round(seconds);
  const first = units.findIndex(([, length]) => rest >= length);
  const parts = units.slice(first, first + 2).map(([unit, length]) => {
    const amount = Math.floor(rest / length);
    rest -= amount * length;
    return amount === 0 ? "" : `${amount}${unit}`;
  });
  return parts.filter((part) => part !== "").join(" ");
}

/** Formats the time since an instant, such as `3m ago`. */
export const formatAge = (at: string, now: number): string =>
  `${formatDuration(Math.max(0, (now - Date.parse(at)) / 1_000))} ago`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Formats the time of day in the local time zone, with the date if it is another day. */
export function timeOfDay(at: string, now: number): string {
  const date = new Date(at);
  const isToday = day.format(date) === day.format(now);
  return isToday ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** Formats an identifier as words: `last_seen` becomes `last seen`. */
export const humanize = (identifier: string): string => identifier.replaceAll("_", " ");

/**
 * Formats the state of an episode. `firing` is shown as waiting, because the next step waits until nothing holds it.
 */
export const episodeState = (state: string): string => (state === "firing" ? "waiting" : humanize(state));

/** Formats a number of things, such as `1 node` or `3 nodes`. */
export const countNoun = (amount: number, thing: string): string =>
  `${formatCount(amount)} ${thing}${amount === 1 ? "" : "s"}`;

/**
 * Formats a message about a node with its name instead of its id, or after its name if the message does not contain the
 * id.
 */
export function withName(message: string, node: { readonly id: string; readonly name: string } | undefined): string {
  if (node === undefined || node.id === node.name) return message;
  const id = node.id.replaceAll(/[^\w-]/g, "\\$&");
  const parts = message.split(new RegExp(`(?<![\\w-])${id}(?![\\w-])`));
  return parts.length === 1 ? `${node.name}: ${message}` : parts.join(node.name);
}
