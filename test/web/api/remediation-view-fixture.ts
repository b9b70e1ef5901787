import { formatDuration } from "../../../src/base/duration.ts";
import { fail, ok } from "../../../src/base/result.ts";
import type { Action, Decision, Episode } from "../../../src/model/remediation/episode.ts";
import type { JournalQuery } from "../../../src/model/remediation/journal.ts";
import type {
  CommandRejection,
  CommandReply,
  OperatorCommand,
} from "../../../src/model/remediation/operator-command.ts";
import { compilePolicy } from "../../../src/policy/policy.ts";
import type {
  Approval,
  NodeExplanation,
  NodeHistory,
  PolicyStatus,
  RemediationStatus,
  RemediationView,
} from "../../../src/remediation/status/views.ts";
import { operatorCommandTable } from "../../../src/web/api/operator-command-routes.ts";
import { stepsOf } from "../fleet-fixture.ts";

/** Start of the samples: 2026-11-21 03:00 UTC. */
export const SAMPLES_START_MS = Date.UTC(2026, 10, 21, 3);
const MINUTE = 60_000;

/** Evidence of an offline node. */
export const evidence = {
  fields: { "node.status": "offline", "node.last_seen": "2026-11-21T02:40:00.000Z" },
  observedAt: SAMPLES_START_MS,
} as const;

/** A decision to hold the node, with two reasons. */
export const heldDecision: Decision = {
  at: SAMPLES_START_MS + 15 * MINUTE,
  policy: "reboot-offline",
  node: "node_1",
  episode: "ep-1",
  step: 1,
  mode: "enforce",
  verdict: "hold",
  blockers: [
    { reason: "window", detail: "outside nights, which begins at 23:00" },
    { reason: "max_actions", detail: "6 of 6 actions within 1h" },
  ],
  evidence,
};

/** The episode of the node. */
export const episode: Episode = {
  id: "ep-1",
  policy: "reboot-offline",
  node: "node_1",
  dryRun: false,
  fingerprint: "reboot-offline v1",
  country: "DE",
  region: "eu-west",
  state: "firing",
  stateAt: SAMPLES_START_MS + 15 * MINUTE,
  openedAt: SAMPLES_START_MS + 15 * MINUTE,
  closedAt: null,
  step: 1,
  acted: 1,
  failures: 0,
  retryAt: null,
  quarantine: null,
  healed: false,
};

/** A hold by an operator. */
export const sampleHold = {
  node: "node_1",
  policy: null,
  kind: "held",
  at: SAMPLES_START_MS,
  until: null,
  reason: "disk swap",
} as const;

/** A verified forced reboot. */
export const verifiedAction: Action = {
  id: "act-2",
  episode: "ep-1",
  policy: "reboot-offline",
  node: "node_1",
  country: "DE",
  region: "eu-west",
  step: 1,
  dryRun: false,
  fingerprint: "reboot-offline v1",
  request: { kind: "reboot", force: true },
  state: "ended",
  evidence,
  createdAt: SAMPLES_START_MS + 20 * MINUTE,
  sentAt: SAMPLES_START_MS + 20 * MINUTE + 1_500,
  endedAt: SAMPLES_START_MS + 26 * MINUTE,
  outcome: "verified",
  inDoubt: false,
  detail: "HTTP 200",
  uptimeHoursBefore: 300,
  rebootingSeen: true,
  proof: "uptime_fell",
};

/** A quarantine that waits for approval. */
export const awaitingAction: Action = {
  ...verifiedAction,
  id: "act-3",
  step: 2,
  request: { kind: "quarantine", reason: "reboot-offline", durationMinutes: 1_440 },
  state: "awaiting",
  createdAt: SAMPLES_START_MS + 30 * MINUTE,
  sentAt: null,
  endedAt: null,
  outcome: null,
  detail: null,
  rebootingSeen: false,
  proof: null,
};

/** The request for approval of {@link awaitingAction}, which expires after four hours. */
export const sampleApproval: Approval = { ...awaitingAction, expiresAt: awaitingAction.createdAt + 240 * MINUTE };

/** An approved reboot that is not sent yet. Its approval expires four hours after it was given. */
export const sampleApproved: Approval = {
  ...awaitingAction,
  id: "act-4",
  node: "node_2",
  request: { kind: "reboot", force: false },
  state: "approved",
  answered: { operator: "alice", at: SAMPLES_START_MS + 35 * MINUTE },
  approvedAt: SAMPLES_START_MS + 35 * MINUTE,
  expiresAt: SAMPLES_START_MS + 275 * MINUTE,
};

/** A policy with every kind of step. */
export const policyStatus: PolicyStatus = {
  policy: compilePolicy({
    name: "reboot-offline",
    mode: "enforce",
    match: null,
    when: 'node.status == "offline"',
    forMs: 15 * MINUTE,
    clearForMs: 10 * MINUTE,
    maxAgeMs: null,
    steps: [
      { action: "disconnect", verify: { withinMs: 3 * MINUTE, expect: null } },
      { action: "reboot", force: true, verify: { withinMs: 10 * MINUTE, expect: "node.uptime_hours < 1" } },
      {
        action: "quarantine",
        durationMs: 1_440 * MINUTE,
        reason: "{{policy}}",
        verify: { withinMs: 5 * MINUTE, expect: null },
      },
      { action: "notify", receiver: "oncall" },
    ],
    retry: { episodes: 2, everyMs: 360 * MINUTE, forgetAfterMs: 1_440 * MINUTE },
    windows: ["nights"],
    blockedBy: [
      { kind: "query", query: "up == 0" },
      { kind: "alerts", matchers: ['severity="critical"'] },
    ],
  }),
  mode: "enforce",
  hasFallenBack: false,
  proven: true,
  matched: { nodes: 24, of: 1_200 },
  pending: 2,
  firing: 1,
  unknown: 3,
  episodes: { firing: 1 },
};

/** Status in which nothing holds an action. */
export const idleStatus: RemediationStatus = {
  mode: "enforce",
  paused: null,
  breaker: null,
  trust: [],
  stormUntil: null,
  stormCause: null,
  journal: null,
  credentials: null,
  roundFailure: null,
  largestWalkNodes: 500,
  limits: { max_disrupted: 5 },
  approvalTtlMs: 240 * MINUTE,
  inFlight: 0,
};

/** Explanation of a node that was never seen. */
export const emptyExplanation = (node: string): NodeExplanation => ({
  node,
  known: false,
  at: SAMPLES_START_MS,
  policies: [],
  holds: [],
});

/** No rows about a node. */
export const emptyHistory: NodeHistory = { episodes: [], actions: [], decisions: [], operatorCommands: [] };

/** Remediation without policies, decisions and actions. */
export const idleRemediation: RemediationView = {
  status: () => idleStatus,
  policyNames: () => [],
  policies: () => stepsOf([]),
  explain: (node) => stepsOf(emptyExplanation(node)),
  historyOf: async () => emptyHistory,
  decisions: async () => [],
  actions: async () => [],
  operatorCommands: async () => [],
  approvals: () => [],
  heldNodes: () => stepsOf([]),
  heldNodeCount: () => stepsOf(0),
  nodeMarks: () => stepsOf(undefined),
};

/** Explanation of node_1, with an episode, a decision and two actions; of other nodes it is empty. */
export const sampleExplanation = (node: string): NodeExplanation =>
  node !== "node_1"
    ? emptyExplanation(node)
    : {
        node,
        known: true,
        at: SAMPLES_START_MS + 40 * MINUTE,
        policies: [
          {
            policy: "reboot-offline",
            mode: "enforce",
            verdict: "true",
            matched: true,
            unknowns: [],
            fields: evidence.fields,
            timer: {
              policy: "reboot-offline",
              node,
              state: "firing",
              trueMs: 40 * MINUTE,
              clearMs: 0,
              since: SAMPLES_START_MS + 15 * MINUTE,
            },
            otherStatusAt: SAMPLES_START_MS + 14 * MINUTE,
            forMs: 15 * MINUTE,
            steps: policyStatus.policy.spec.steps,
            episode,
            blockers: [{ reason: "approval", detail: "act-3 waits for approval" }],
          },
        ],
        holds: [],
      };

/** The rows about node_1; there are none about other nodes. */
export const sampleHistory = (node: string): NodeHistory =>
  node !== "node_1"
    ? emptyHistory
    : {
        episodes: [episode],
        actions: [awaitingAction, verifiedAction],
        decisions: [heldDecision],
        operatorCommands: [],
      };

/** Remediation with the sample explanation. `queries`: receives the queries of the journal. */
export function sampleRemediation(queries: JournalQuery[] = []): RemediationView {
  return {
    ...idleRemediation,
    policyNames: () => ["reboot-offline"],
    policies: () => stepsOf([policyStatus]),
    explain: (node) => stepsOf(sampleExplanation(node)),
    historyOf: async (node) => sampleHistory(node),
    decisions: async (query) => {
      queries.push(query);
      return [heldDecision];
    },
    actions: async (query) => {
      queries.push(query);
      return [awaitingAction, verifiedAction];
    },
    approvals: (state) => (state === "approved" ? [sampleApproved] : [sampleApproval]),
  };
}

/**
 * Operator commands that are recorded, and succeed unless there is a `rejection`. `operators`: receives the names of
 * the operators.
 */
export function recordingCommands(
  recorded: string[][],
  rejection: CommandRejection | null = null,
  operators: string[] = [],
): (command: OperatorCommand) => Promise<CommandReply> {
  return async ({ command, target, reason, forMs = null, operator }) => {
    const { about, hasReason } = operatorCommandTable.find(({ name }) => name === command)!;
    const parameters = [...(hasReason ? [reason] : []), ...(forMs === null ? [] : [formatDuration(forMs)])];
    recorded.push([command, ...(about === undefined ? [] : [target]), ...parameters]);
    if (operator !== null) operators.push(operator);
    return rejection === null ? ok(`${command} is done`) : fail(rejection);
  };
}
