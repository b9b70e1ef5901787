import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Configuration, ProcessMoment } from "../daemon/daemon-process.ts";
import { randomEdit } from "../runs/policies-input.ts";
import type { RandomChoices } from "../runs/random-choices.ts";
import type { LateActions } from "./late-actions.ts";

/** A point at which a process may be killed. */
export type CrashPoint = ProcessMoment | "commit_before" | "commit_after" | "post";

/**
 * A point at which the machine may be suspended. At `intended`, `posting` and `sent`, an action in that state was
 * journaled.
 */
export type SuspendPoint = "wake" | "answer" | "intended" | "posting" | "sent" | "post";

/** An event of the process, its machine, its configuration, the operators or other users of the key. */
export type WorldEvent =
  | { readonly kind: "restart"; readonly downMs: DurationMs }
  /** Kills the process at the n-th such point after the event. */
  | { readonly kind: "kill"; readonly point: CrashPoint; readonly count: number; readonly downMs: DurationMs }
  | { readonly kind: "disk_full"; readonly forMs: DurationMs }
  /** Suspends the machine at the n-th such point after the event. */
  | { readonly kind: "suspend"; readonly point: SuspendPoint; readonly count: number; readonly forMs: DurationMs }
  | { readonly kind: "clock_step"; readonly byMs: number }
  | { readonly kind: "reload"; readonly configuration: Configuration }
  | { readonly kind: "hold" | "quarantine"; readonly node: number; readonly forMs: DurationMs }
  | { readonly kind: "pause" | "blocked"; readonly forMs: DurationMs }
  | { readonly kind: "lift_quarantine" | "accept_inventory" }
  | ({ readonly kind: "late_actions" } & LateActions)
  | {
      readonly kind: "other_user";
      readonly forMs: DurationMs;
      readonly path: string;
      readonly calls: number;
      readonly everyMs: DurationMs;
    };

/** An event and its time since the start. */
export interface TimedEvent {
  readonly atMs: DurationMs;
  readonly event: WorldEvent;
}

/** Mean times between events of each group. */
const PROCESS_EVENT_INTERVAL_MS: DurationMs = 90 * MINUTE_MS;
const CLOCK_EVENT_INTERVAL_MS: DurationMs = 8 * HOUR_MS;
const OPERATOR_EVENT_INTERVAL_MS: DurationMs = 80 * MINUTE_MS;
const RELOAD_INTERVAL_MS: DurationMs = 6 * HOUR_MS;
const EXTERNAL_USER_INTERVAL_MS: DurationMs = 12 * HOUR_MS;
const SUSPENSION_INTERVAL_MS: DurationMs = 12 * HOUR_MS;
const LATE_ACTIONS_INTERVAL_MS: DurationMs = 8 * HOUR_MS;
/** Share of the runs with a downtime of hours. */
const LONG_DOWNTIME_SHARE = 0.4;

const CRASH_POINTS: readonly CrashPoint[] = [
  ...(["sleep", "wake", "request", "answer", "count"] as const),
  ...(["commit_before", "commit_after", "commit_before", "commit_after", "post", "post"] as const),
];
/** Small enough to be reached: a process has thousands of sleeps and calls, and hundreds of commits. */
const COUNT_MAX = 60;

/** Options of {@link randomEvents}. */
export interface EventOptions {
  readonly nodes: number;
  /** Period of all events. */
  readonly fromMs: DurationMs;
  readonly untilMs: DurationMs;
  readonly configuration: Configuration;
}

/** Draws the events of a run, in the order of their times. */
export function randomEvents(
  choices: RandomChoices,
  { nodes, fromMs, untilMs, configuration }: EventOptions,
): readonly TimedEvent[] {
  const groups: readonly (readonly [DurationMs, () => WorldEvent])[] = [
    [PROCESS_EVENT_INTERVAL_MS, () => processEvent(choices)],
    [CLOCK_EVENT_INTERVAL_MS, () => clockStep(choices)],
    [OPERATOR_EVENT_INTERVAL_MS, () => operatorEvent(choices, nodes)],
    [EXTERNAL_USER_INTERVAL_MS, () => externalUserEvent(choices)],
  ];
  const events = groups.flatMap(([everyMs, event]) =>
    choices.times(fromMs, untilMs, (untilMs - fromMs) / everyMs).map((atMs): TimedEvent => ({ atMs, event: event() })),
  );
  let current = configuration;
  const reloads = choices.times(fromMs, untilMs, (untilMs - fromMs) / RELOAD_INTERVAL_MS).map((atMs): TimedEvent => {
    current = editConfiguration(choices, current);
    return { atMs, event: { kind: "reload", configuration: current } };
  });
  return [...events, ...reloads].toSorted((one, other) => one.atMs - other.atMs);
}

/** Draws suspensions of the machine, in the order of their times. */
export function suspensions(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly TimedEvent[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / SUSPENSION_INTERVAL_MS).map((atMs) => {
    const forMs = choices.pick([10 * SECOND_MS, 2 * MINUTE_MS, 20 * MINUTE_MS, 3 * HOUR_MS]);
    const point = choices.pick(["wake", "answer", "intended", "posting", "sent", "post"] as const);
    const count = point === "wake" || point === "answer" ? 1 + choices.integer(COUNT_MAX) : 1;
    return { atMs, event: { kind: "suspend", point, count, forMs } };
  });
}

/** Draws, for some runs, a downtime that lasts for hours and ends by `untilMs`. */
export function longDowntimes(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly TimedEvent[] {
  if (!choices.chance(LONG_DOWNTIME_SHARE)) return [];
  const atMs = choices.ms(fromMs, untilMs);
  const downMs = Math.min(choices.ms(2 * HOUR_MS, 12 * HOUR_MS), untilMs - atMs);
  return [{ atMs, event: choices.chance(0.5) ? { kind: "restart", downMs } : killEvent(choices, downMs) }];
}

/** Draws periods in which reboots and quarantines are executed late, twice or never, in the order of their starts. */
export function lateReboots(choices: RandomChoices, fromMs: DurationMs, untilMs: DurationMs): readonly TimedEvent[] {
  return choices.times(fromMs, untilMs, (untilMs - fromMs) / LATE_ACTIONS_INTERVAL_MS).map((atMs) => {
    const forMs = Math.min(choices.ms(10 * MINUTE_MS, 3 * HOUR_MS), untilMs - atMs);
    const delayMs = choices.pick([
      30 * SECOND_MS,
      4 * MINUTE_MS,
      15 * MINUTE_MS,
      90 * MINUTE_MS,
      Number.POSITIVE_INFINITY,
    ]);
    return { atMs, event: { kind: "late_actions", forMs, delayMs, isRepeated: choices.chance(0.4) } };
  });
}

function editConfiguration(choices: RandomChoices, { config, settings }: Configuration): Configuration {
  if (choices.chance(0.7)) return { settings, config: randomEdit(choices, config) };
  const nodes = { kind: "every", intervalMs: choices.pick([MINUTE_MS, 2 * MINUTE_MS]) } as const;
  return { config, settings: { ...settings, schedules: { ...settings.schedules, nodes } } };
}

function processEvent(choices: RandomChoices): WorldEvent {
  const downMs = choices.ms(SECOND_MS, choices.pick([5, 45]) * MINUTE_MS);
  const kind = choices.pick(["restart", "kill", "kill", "kill", "disk_full"] as const);
  if (kind === "disk_full") return { kind, forMs: choices.ms(SECOND_MS, 20 * MINUTE_MS) };
  if (kind === "restart") return { kind, downMs };
  return killEvent(choices, downMs);
}

const killEvent = (choices: RandomChoices, downMs: DurationMs): WorldEvent => ({
  kind: "kill",
  point: choices.pick(CRASH_POINTS),
  count: 1 + choices.integer(COUNT_MAX),
  downMs,
});

const clockStep = (choices: RandomChoices): WorldEvent => ({
  kind: "clock_step",
  byMs: choices.pick([-1, 1]) * choices.pick([SECOND_MS, 10 * MINUTE_MS, 3 * HOUR_MS]),
});

function operatorEvent(choices: RandomChoices, nodes: number): WorldEvent {
  const forMs = choices.ms(5 * MINUTE_MS, 3 * HOUR_MS);
  const kinds = [
    "quarantine",
    "quarantine",
    "lift_quarantine",
    "hold",
    "pause",
    "blocked",
    "accept_inventory",
  ] as const;
  const kind = choices.pick(kinds);
  switch (kind) {
    case "quarantine":
    case "hold":
      return { kind, node: choices.integer(nodes), forMs };
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

const externalUserEvent = (choices: RandomChoices): WorldEvent => ({
  kind: "other_user",
  forMs: choices.ms(5 * MINUTE_MS, HOUR_MS),
  path: choices.pick(["/v1/nodes?page=1&limit=1", "/v1/sessions/stats"]),
  ...choices.pick([
    { calls: 1, everyMs: 12 * SECOND_MS },
    { calls: 1, everyMs: 2 * SECOND_MS },
    { calls: 20, everyMs: 5 * MINUTE_MS },
  ]),
});
