import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { actionOf, closedEpisodeOf, decisionOf, episodeOf } from "../arbitrary-changes.ts";

/** When the sample begins. */
export const SAMPLE_START = Date.UTC(2026, 10, 21, 9);

const at = (minutes: number): number => SAMPLE_START + minutes * MINUTE_MS;

/**
 * An hour: alice approves a reboot of node_1, which heals it; node_2 is not healed by a quarantine; bob rejects a
 * reboot of node_3, whose episode stays open.
 */
export const sampleJournal = (): readonly JournalChange[] => [
  {
    kind: "episode",
    row: closedEpisodeOf(1, at(12), { openedAt: at(0), stateAt: at(12), acted: 1, step: 0 }),
  },
  {
    kind: "action",
    row: actionOf(2, "ep-1", {
      createdAt: at(0),
      approvedAt: at(2),
      answered: { operator: "alice", at: at(2) },
      sentAt: at(2),
      endedAt: at(4),
      statusBefore: "offline",
    }),
  },
  {
    kind: "episode",
    row: closedEpisodeOf(3, at(40), {
      node: "node_2",
      policy: "full-disk",
      state: "given_up",
      healed: false,
      openedAt: at(10),
      stateAt: at(40),
      acted: 1,
      step: 1,
      quarantine: { action: "act-4", endsAt: at(70), seen: true, seenOnline: 0, overdue: false },
    }),
  },
  {
    kind: "action",
    row: actionOf(4, "ep-3", {
      node: "node_2",
      policy: "full-disk",
      step: 1,
      request: { kind: "quarantine", reason: "full-disk: ep-3", durationMinutes: 60 },
      createdAt: at(10),
      sentAt: at(10),
      endedAt: at(40),
      outcome: "ineffective",
      inDoubt: true,
      detail: "no response within 10s",
      uptimeHoursBefore: null,
      rebootingSeen: false,
      proof: null,
    }),
  },
  { kind: "episode", row: episodeOf(5, { node: "node_3", openedAt: at(20), stateAt: at(20) }) },
  {
    kind: "action",
    row: actionOf(6, "ep-5", {
      node: "node_3",
      state: "rejected",
      createdAt: at(20),
      answered: { operator: "bob", at: at(25) },
      sentAt: null,
      endedAt: at(25),
      outcome: null,
      rebootingSeen: false,
      proof: null,
    }),
  },
  {
    kind: "decision",
    row: decisionOf(at(0), { verdict: "act", blockers: [], evidence: { fields: EVIDENCE, observedAt: at(-1) } }),
  },
  {
    kind: "decision",
    row: decisionOf(at(30), {
      episode: null,
      blockers: [
        { reason: "cooldown", detail: "the last episode ended 18m ago, and 30m must pass" },
        { reason: "paused", detail: "alice paused all actions" },
      ],
      evidence: { fields: EVIDENCE, observedAt: at(30) },
    }),
  },
  {
    kind: "command",
    row: {
      at: at(2),
      command: "approve",
      operator: "alice",
      node: "node_1",
      action: "act-2",
      detail: "act-2 approved",
    },
  },
  {
    kind: "command",
    row: { at: at(29), command: "pause", operator: "alice", node: null, action: null, detail: "paused: deployment" },
  },
  {
    kind: "command",
    row: { at: at(50), command: "reload", operator: null, node: null, action: null, detail: "configuration reloaded" },
  },
];

/** The time range of the sample. */
export const SAMPLE_RANGE = {
  from: new Date(SAMPLE_START).toISOString(),
  to: new Date(SAMPLE_START + HOUR_MS).toISOString(),
} as const;

const EVIDENCE = { "node.status": "offline" };
