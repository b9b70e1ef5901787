import fc from "fast-check";
import { MODES } from "../../src/model/policy/policy.ts";
import {
  ACTION_OUTCOMES,
  type Action,
  CLOSED_STATES,
  type Decision,
  type Episode,
  type NodeHold,
  OPEN_STATES,
  type TimerRow,
} from "../../src/model/remediation/episode.ts";
import { formatId, type JournalChange } from "../../src/model/remediation/journal.ts";
import { OPERATOR_COMMANDS, type OperatorCommandRow } from "../../src/model/remediation/operator-command.ts";
import { HOLD_REASONS } from "../../src/policy/decision.ts";

/** Returns an open episode with the given overrides. */
export const episodeOf = (number: number, overrides: Partial<Episode> = {}): Episode => ({
  id: formatId("ep", number),
  policy: "reboot-offline",
  node: "node_1",
  dryRun: false,
  fingerprint: "as it was",
  country: "DE",
  region: "eu-central",
  state: "firing",
  stateAt: number,
  openedAt: number,
  closedAt: null,
  step: 0,
  acted: 0,
  failures: 0,
  retryAt: null,
  quarantine: null,
  healed: false,
  ...overrides,
});

/** Returns a healed episode that was closed at `closedAt`. */
export const closedEpisodeOf = (number: number, closedAt: number, overrides: Partial<Episode> = {}): Episode =>
  episodeOf(number, { state: "healed", closedAt, acted: 1, healed: true, ...overrides });

/** Returns a verified action with the given overrides. */
export const actionOf = (number: number, episode: string, overrides: Partial<Action> = {}): Action => ({
  id: formatId("act", number),
  episode,
  policy: "reboot-offline",
  node: "node_1",
  country: "DE",
  region: "eu-central",
  step: 0,
  dryRun: false,
  fingerprint: "as it was",
  request: { kind: "reboot", force: false },
  state: "ended",
  evidence: { fields: { "node.status": "offline" }, observedAt: number },
  createdAt: number,
  sentAt: number,
  endedAt: number,
  outcome: "verified",
  inDoubt: false,
  detail: null,
  uptimeHoursBefore: 7,
  rebootingSeen: true,
  proof: "uptime_fell",
  ...overrides,
});

export const decisionOf = (at: number, overrides: Partial<Decision> = {}): Decision => ({
  at,
  policy: "reboot-offline",
  node: "node_1",
  episode: "ep-1",
  step: 0,
  mode: "enforce",
  verdict: "hold",
  blockers: [{ reason: "cooldown", detail: "the last episode ended 12m ago, and 30m must pass" }],
  evidence: { fields: { "node.status": "offline" }, observedAt: at },
  ...overrides,
});

export const timerOf = (node: string, trueMs = 0): TimerRow => ({
  policy: "reboot-offline",
  node,
  state: "pending",
  trueMs,
  clearMs: 0,
  since: 1,
});

export const holdOf = (node: string, overrides: Partial<NodeHold> = {}): NodeHold => ({
  node,
  policy: null,
  kind: "held",
  at: 1,
  until: null,
  reason: "being looked at",
  ...overrides,
});

// Few keys, so that rows meet; the rest is any text, and any finite number: no column may bend it.
const NODES = ["node_1", "node_2", "", "nœud\u0000'\"", "\u{1f600}"];
const POLICIES = ["reboot-offline", "cut-off", "ü; --"];
const text = fc.string({ unit: "binary", maxLength: 12 });
const node = fc.constantFrom(...NODES);
const policy = fc.constantFrom(...POLICIES);
// JSON has no negative zero.
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
// Often whole and near to each other, so that instants meet as well.
const instant = fc.oneof(fc.nat({ max: 20 }), fc.double({ min: 0, max: 20, noNaN: true }), fc.nat());
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const evidence = fc.record({
  fields: fc.dictionary(text, fc.oneof(text, number, fc.boolean()), { noNullPrototype: true }),
  observedAt: instant,
});
const serial = fc.integer({ min: 1, max: 12 });

const timer: fc.Arbitrary<TimerRow> = fc.record(
  {
    policy,
    node,
    state: fc.constantFrom("pending", "firing"),
    trueMs: number,
    clearMs: number,
    since: instant,
    nodeCreatedAt: instant,
  },
  { requiredKeys: ["policy", "node", "state", "trueMs", "clearMs", "since"] },
);

const episode: fc.Arbitrary<Episode> = fc
  .record({
    id: serial.map((number) => formatId("ep", number)),
    policy,
    node,
    dryRun: fc.boolean(),
    fingerprint: text,
    country: text,
    region: text,
    stateAt: instant,
    openedAt: instant,
    step: fc.nat(),
    acted: fc.nat(),
    failures: fc.nat(),
    retryAt: orNull(instant),
    quarantine: orNull(
      fc.record({
        action: text,
        endsAt: instant,
        seen: fc.boolean(),
        seenOnline: fc.nat(),
        overdue: fc.boolean(),
      }),
    ),
    healed: fc.boolean(),
  })
  .chain((each) =>
    fc
      .oneof(
        fc.record({ state: fc.constantFrom(...OPEN_STATES), closedAt: fc.constant(null) }),
        fc.record({ state: fc.constantFrom(...CLOSED_STATES), closedAt: instant }),
      )
      .map((end) => ({ ...each, ...end })),
  );

const action: fc.Arbitrary<Action> = fc.record({
  id: serial.map((number) => formatId("act", number)),
  episode: serial.map((number) => formatId("ep", number)),
  policy,
  node,
  country: text,
  region: text,
  step: fc.nat(),
  dryRun: fc.boolean(),
  fingerprint: text,
  request: fc.oneof(
    fc.constant({ kind: "disconnect" as const }),
    fc.record({ kind: fc.constant("reboot" as const), force: fc.boolean() }),
    fc.record({ kind: fc.constant("quarantine" as const), reason: text, durationMinutes: fc.nat() }),
  ),
  state: fc.constantFrom<Action["state"][]>(
    "awaiting",
    "approved",
    "intended",
    "posting",
    "sent",
    "ended",
    "withdrawn",
    "rejected",
    "lapsed",
  ),
  evidence,
  createdAt: instant,
  sentAt: orNull(instant),
  endedAt: orNull(instant),
  outcome: orNull(fc.constantFrom(...ACTION_OUTCOMES)),
  inDoubt: fc.boolean(),
  detail: orNull(text),
  uptimeHoursBefore: orNull(number),
  rebootingSeen: fc.boolean(),
  proof: orNull(fc.constantFrom("uptime_fell", "rebooting_seen", "boot_after_post", "none")),
});

const decision: fc.Arbitrary<Decision> = fc.record({
  at: instant,
  policy,
  node,
  episode: orNull(serial.map((number) => formatId("ep", number))),
  step: fc.nat(),
  mode: fc.constantFrom(...MODES),
  verdict: fc.constantFrom("act", "hold"),
  blockers: fc.array(fc.record({ reason: fc.constantFrom(...HOLD_REASONS), detail: text }), { maxLength: 3 }),
  evidence,
});

const hold: fc.Arbitrary<NodeHold> = fc.record({
  node,
  policy: orNull(policy),
  kind: fc.constantFrom("held", "vetoed", "given_up"),
  at: instant,
  until: orNull(instant),
  reason: text,
});

const operatorCommand: fc.Arbitrary<OperatorCommandRow> = fc.record({
  at: instant,
  command: fc.constantFrom(...OPERATOR_COMMANDS),
  operator: orNull(text),
  node: orNull(node),
  action: orNull(serial.map((number) => formatId("act", number))),
  detail: text,
});

const rowChange = <K extends JournalChange["kind"], R>(kind: K, row: fc.Arbitrary<R>) =>
  row.map((value) => ({ kind, row: value }));

/** Any one change; keys are few, so that changes meet. */
export const anyChange: fc.Arbitrary<JournalChange> = fc.oneof(
  rowChange("timer", timer),
  rowChange("episode", episode),
  rowChange("action", action),
  rowChange("decision", decision),
  rowChange("hold", hold),
  rowChange("command", operatorCommand),
  fc.record({ kind: fc.constant("timer_gone" as const), policy, node }),
  fc.record({ kind: fc.constant("hold_gone" as const), policy: orNull(policy), node }),
  fc.record({
    kind: fc.constant("fact" as const),
    key: fc.constantFrom("remediation.", "remediation.pause", "remediation.\u{10ffff}"),
    value: orNull(text),
  }),
);

/** Any query over the rows of {@link anyChange}. */
export const anyQuery = fc
  .record({
    node: orNull(node),
    policy: orNull(policy),
    until: orNull(instant),
    limit: fc.integer({ min: -1, max: 9 }),
  })
  .map(({ node, policy, until, limit }) => ({
    ...(node !== null && { node }),
    ...(policy !== null && { policy }),
    ...(until !== null && { until }),
    limit,
  }));

/** Any instant of these rows. */
export const anyInstant = instant;
