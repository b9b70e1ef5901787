import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import { leastRemaining } from "../../rate-limit/limit-headers.ts";
import type { WardenView } from "../../remediation/status/views.ts";
import { NODE_STATUSES, type NodeStatus } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import type { Fleet, SessionsView } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { type Scene, statusLine } from "../../web/api/status-views.ts";
import { createDeeds } from "./remediation-lines.ts";

/** One line for a person, and what it means for the node it speaks of. */
export interface Told {
  readonly text: string;
  readonly tone: "good" | "bad" | "change" | "summary";
}

/** Turns what the daemon sees into lines for a person. */
export interface Telling {
  /** Lines on what is new since the last call. */
  tell(scene: Scene, warden: WardenView): Told[];
}

/** A summary comes this often. */
const SUMMARY_MS: DurationMs = 15 * SECOND_MS;
/** Changes of nodes told one by one at a time; the rest is counted. */
const CHANGES_MAX = 8;

/** `startedAt`: from when the lines count their time. */
export function createTelling(startedAt: MonotonicMs): Telling {
  const statuses = new Map<string, number>();
  const deeds = createDeeds();
  let summaryAt = startedAt;

  function changes(fleet: Fleet): Told[] {
    const lines: Told[] = [];
    for (let slot = 0; slot < fleet.slots; slot++) {
      const id = fleet.ids[slot]!;
      if (id === "") continue;
      const before = statuses.get(id);
      const now = fleet.status[slot]!;
      statuses.set(id, now);
      if (before === undefined || before === now) continue;
      const place = fleet.places[fleet.place[slot]!];
      const text = `${fleet.names[slot]} (${id}, ${place?.region}): ${NODE_STATUSES[before]} → ${NODE_STATUSES[now]}`;
      lines.push({ text, tone: toneOf(NODE_STATUSES[now]!) });
    }
    if (lines.length <= CHANGES_MAX) return lines;
    const rest: Told = { text: `and ${lines.length - CHANGES_MAX} more nodes changed`, tone: "change" };
    return [...lines.slice(0, CHANGES_MAX), rest];
  }

  return {
    tell(scene, warden) {
      const elapsed = clockText(scene.monotonic - startedAt);
      const lines = scene.snapshot === null ? [] : changes(scene.snapshot.fleet);
      const fleet = scene.snapshot?.fleet;
      lines.push(...deeds.tell(warden, (node) => fleet?.names[fleet.ids.indexOf(node)] ?? "?"));
      const isKnown = scene.snapshot !== null && scene.snapshot.fleet.walkedAt !== null;
      if (scene.monotonic >= summaryAt && (isKnown || scene.monotonic >= startedAt + SUMMARY_MS)) {
        summaryAt = scene.monotonic + SUMMARY_MS;
        lines.push({ text: `${statusLine(scene)} | ${budgetLine(scene)}`, tone: "summary" });
      }
      return lines.map(({ text, tone }) => ({ text: `${elapsed}  ${text}`, tone }));
    },
  };
}

function toneOf(status: NodeStatus): Told["tone"] {
  if (status === "online") return "good";
  return status === "offline" ? "bad" : "change";
}

function budgetLine({ ledger, snapshot }: Scene): string {
  const detailed = snapshot?.fleet.detailedAt.reduce((count, at) => count + (Number.isNaN(at) ? 0 : 1), 0) ?? 0;
  const [node, session] = CATEGORIES.map((category) => leastRemaining(ledger.accounts[category].view) ?? "?");
  const seen = `${activeSessions(snapshot?.sessions ?? null)} active sessions, ${detailed} nodes in detail`;
  return `${seen} | ${ledger.monthUsed} calls; left now: ${node} node, ${session} session`;
}

/** What is not known yet is no zero. */
function activeSessions(sessions: SessionsView | null): number | "?" {
  if (sessions === null) return "?";
  const begin = SESSION_STATUSES.indexOf("active") * SESSION_TYPES.length;
  return sessions.counts.subarray(begin, begin + SESSION_TYPES.length).reduce((sum, count) => sum + count, 0);
}

function clockText(ms: DurationMs): string {
  const total = Math.floor(ms / SECOND_MS);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(total / 3_600))}:${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
}
