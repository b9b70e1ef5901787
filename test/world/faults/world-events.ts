import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Draw } from "../runs/random-choices.ts";
import type { Configuration, Moment } from "../daemon/daemon-process.ts";
import { drawEdit } from "../runs/policies-input.ts";

/** A moment at which a process may be killed. */
export type KillPoint = Moment | "commit_before" | "commit_after" | "post";

/** What happens to the process, its machine and its configuration, and what operators and other users of the key do. */
export type WorldEvent =
  | { readonly kind: "restart"; readonly downMs: DurationMs }
  /** Killed at the n-th such moment from then on. */
  | { readonly kind: "kill"; readonly point: KillPoint; readonly count: number; readonly downMs: DurationMs }
  | { readonly kind: "disk_full"; readonly forMs: DurationMs }
  | { readonly kind: "clock_step"; readonly byMs: number }
  | { readonly kind: "reload"; readonly configuration: Configuration }
  | { readonly kind: "hold" | "quarantine"; readonly node: number; readonly forMs: DurationMs }
  | { readonly kind: "pause" | "blocked"; readonly forMs: DurationMs }
  | { readonly kind: "lift_quarantine" | "accept_inventory" }
  | {
      readonly kind: "other_user";
      readonly forMs: DurationMs;
      readonly path: string;
      readonly calls: number;
      readonly everyMs: DurationMs;
    };

/** An event, and when it happens, from the start. */
export interface TimedEvent {
  readonly atMs: DurationMs;
  readonly event: WorldEvent;
}

/** Mean times between events of each group. */
const PROCESS_EVERY_MS: DurationMs = 90 * MINUTE_MS;
const CLOCK_EVERY_MS: DurationMs = 8 * HOUR_MS;
const OPERATOR_EVERY_MS: DurationMs = 80 * MINUTE_MS;
const RELOAD_EVERY_MS: DurationMs = 6 * HOUR_MS;
const OTHERS_EVERY_MS: DurationMs = 12 * HOUR_MS;

const KILL_POINTS: readonly KillPoint[] = [
  ...(["sleep", "wake", "request", "answer", "count", "fact"] as const),
  ...(["commit_before", "commit_after", "commit_before", "commit_after", "post", "post"] as const),
];
/** A life has thousands of sleeps and calls, and hundreds of commits. */
const COUNT_MAX = 60;

/** What events are drawn for. */
export interface EventTerms {
  readonly nodes: number;
  /** All of them happen between these. */
  readonly fromMs: DurationMs;
  readonly untilMs: DurationMs;
  readonly configuration: Configuration;
}

/** Draws the events of a run. */
export function drawEvents(draw: Draw, { nodes, fromMs, untilMs, configuration }: EventTerms): readonly TimedEvent[] {
  const groups: readonly (readonly [DurationMs, () => WorldEvent])[] = [
    [PROCESS_EVERY_MS, () => processEvent(draw)],
    [CLOCK_EVERY_MS, () => clockStep(draw)],
    [OPERATOR_EVERY_MS, () => operatorEvent(draw, nodes)],
    [OTHERS_EVERY_MS, () => otherUser(draw)],
  ];
  const events = groups.flatMap(([everyMs, event]) =>
    draw.times(fromMs, untilMs, (untilMs - fromMs) / everyMs).map((atMs): TimedEvent => ({ atMs, event: event() })),
  );
  let current = configuration;
  const reloads = draw.times(fromMs, untilMs, (untilMs - fromMs) / RELOAD_EVERY_MS).map((atMs): TimedEvent => {
    current = edited(draw, current);
    return { atMs, event: { kind: "reload", configuration: current } };
  });
  return [...events, ...reloads].toSorted((one, other) => one.atMs - other.atMs);
}

function edited(draw: Draw, { rules, settings }: Configuration): Configuration {
  if (draw.chance(0.7)) return { settings, rules: drawEdit(draw, rules) };
  const nodes = { kind: "every", intervalMs: draw.one([MINUTE_MS, 2 * MINUTE_MS]) } as const;
  return { rules, settings: { ...settings, cadences: { ...settings.cadences, nodes } } };
}

function processEvent(draw: Draw): WorldEvent {
  const downMs = draw.ms(SECOND_MS, draw.one([5, 45]) * MINUTE_MS);
  const kind = draw.one(["restart", "kill", "kill", "kill", "disk_full"] as const);
  if (kind === "disk_full") return { kind, forMs: draw.ms(SECOND_MS, 20 * MINUTE_MS) };
  if (kind === "restart") return { kind, downMs };
  return { kind, point: draw.one(KILL_POINTS), count: 1 + draw.whole(COUNT_MAX), downMs };
}

const clockStep = (draw: Draw): WorldEvent => ({
  kind: "clock_step",
  byMs: draw.one([-1, 1]) * draw.one([SECOND_MS, 10 * MINUTE_MS, 3 * HOUR_MS]),
});

function operatorEvent(draw: Draw, nodes: number): WorldEvent {
  const forMs = draw.ms(5 * MINUTE_MS, 3 * HOUR_MS);
  const kinds = [
    "quarantine",
    "quarantine",
    "lift_quarantine",
    "hold",
    "pause",
    "blocked",
    "accept_inventory",
  ] as const;
  const kind = draw.one(kinds);
  switch (kind) {
    case "quarantine":
    case "hold":
      return { kind, node: draw.whole(nodes), forMs };
    case "pause":
    case "blocked":
      return { kind, forMs: Math.min(forMs, HOUR_MS) };
    case "lift_quarantine":
    case "accept_inventory":
      return { kind };
    default:
      return kind satisfies never;
  }
}

/** Another user polls the list, reads statistics, or calls in bursts. */
const otherUser = (draw: Draw): WorldEvent => ({
  kind: "other_user",
  forMs: draw.ms(5 * MINUTE_MS, HOUR_MS),
  path: draw.one(["/v1/nodes?page=1&limit=1", "/v1/sessions/stats"]),
  ...draw.one([
    { calls: 1, everyMs: 12 * SECOND_MS },
    { calls: 1, everyMs: 2 * SECOND_MS },
    { calls: 20, everyMs: 5 * MINUTE_MS },
  ]),
});
