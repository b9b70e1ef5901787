import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { CATEGORIES } from "../budget/limits.ts";
import { leastRemaining } from "../budget/view.ts";
import { NODE_STATUSES } from "../model/node.ts";
import type { Fleet } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";
import { type Scene, statusLine } from "../web/views.ts";

/** Turns what the daemon sees into lines for a person. */
export interface Telling {
  /** Lines on what is new since the last call. */
  tell(scene: Scene): string[];
}

/** A summary comes this often. */
const SUMMARY_MS: DurationMs = 15 * SECOND_MS;
/** Changes of nodes told one by one at a time; the rest is counted. */
const CHANGES_MAX = 8;

/** `startedAt`: from when the lines count their time. */
export function createTelling(startedAt: MonotonicMs): Telling {
  const statuses = new Map<string, number>();
  let summaryAt = startedAt;

  function changes(fleet: Fleet): string[] {
    const lines: string[] = [];
    for (let slot = 0; slot < fleet.slots; slot++) {
      const id = fleet.ids[slot]!;
      if (id === "") continue;
      const before = statuses.get(id);
      const now = fleet.status[slot]!;
      statuses.set(id, now);
      if (before === undefined || before === now) continue;
      const place = fleet.places[fleet.place[slot]!];
      lines.push(`${fleet.names[slot]} (${id}, ${place?.region}): ${NODE_STATUSES[before]} → ${NODE_STATUSES[now]}`);
    }
    if (lines.length <= CHANGES_MAX) return lines;
    return [...lines.slice(0, CHANGES_MAX), `and ${lines.length - CHANGES_MAX} nodes more changed`];
  }

  return {
    tell(scene) {
      const elapsed = clockText(scene.monotonic - startedAt);
      const lines = scene.snapshot === null ? [] : changes(scene.snapshot.fleet);
      if (scene.monotonic >= summaryAt) {
        summaryAt = scene.monotonic + SUMMARY_MS;
        lines.push(`${statusLine(scene)} | ${budgetLine(scene)}`);
      }
      return lines.map((line) => `${elapsed}  ${line}`);
    },
  };
}

function budgetLine({ ledger, snapshot }: Scene): string {
  const read = snapshot?.fleet.detailedAt.reduce((count, at) => count + (Number.isNaN(at) ? 0 : 1), 0) ?? 0;
  const left = CATEGORIES.map((category) => `${leastRemaining(ledger.accounts[category].view) ?? "?"} ${category}`);
  return `details of ${read} read | ${ledger.monthUsed} calls made, left now: ${left.join(", ")}`;
}

function clockText(ms: DurationMs): string {
  const total = Math.floor(ms / SECOND_MS);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(total / 3_600))}:${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
}
