import type { JournalContents } from "../../src/model/remediation/journal.ts";
import type { OperatorCommandRow } from "../../src/model/remediation/operator-command.ts";
import { actionOf, episodeOf } from "./arbitrary-changes.ts";

/** Returns a row as it was stored when `dryRun` was `shadow`. */
const withShadow = <Row extends { readonly dryRun: boolean }>({ dryRun, ...row }: Row) => ({ ...row, shadow: dryRun });

const EPISODES = [episodeOf(1, { dryRun: true, acted: 1 }), episodeOf(3, { node: 'the "shadow": node' })];
const ACTIONS = [
  actionOf(2, "ep-1", { dryRun: true, outcome: "dry_run" }),
  actionOf(4, "ep-3", { detail: '{"shadow":true}' }),
];

const COMMAND = { at: 5, operator: "alice", node: "node_1", action: null, detail: "held: its order" } as const;

/** Rows as they were stored before names in them were changed. */
export const EARLIER_ROWS = {
  episodes: EPISODES.map(withShadow),
  actions: ACTIONS.map(withShadow),
  commands: [{ ...COMMAND, order: "hold" }],
  facts: {
    "warden.clock": "1",
    "warden.clock_uncertain_until": "2",
    "warden.began": "3",
    "warden.paused": '{"at":4,"reason":"by hand"}',
    "warden.credentials": "{}",
    "warden.acting": '["warden.acting"]',
    "warden.storm": '{"since":1,"until":2,"blowing":false}',
    "warden.sight_cooldown": "broken",
    "warden.proven.warden.paused": "fingerprint 1",
    "warden.fallen.reboot-offline": "fingerprint 2",
    "warden.about.reboot-offline": "condition",
    "warden.efficacy_since.reboot-offline": "5",
    "warden.correlated":
      '{"onsets":[],"groups":[{"policy":"p","place":"DE","at":6,"nodes":["n\\"place\\":"]}],"real":[],"shadow":[{"place":"FR","from":7,"to":8,"nodes":["node_1"],"until":null}]}',
    "collect.extent": "{}",
    "month.used_before": "9",
  },
};

/** The same rows with the current names. */
export const RENAMED_ROWS: Pick<JournalContents, "episodes" | "actions"> & {
  readonly commands: readonly OperatorCommandRow[];
  readonly facts: object;
} = {
  episodes: EPISODES,
  actions: ACTIONS,
  commands: [{ ...COMMAND, command: "hold" }],
  facts: {
    "remediation.clock": "1",
    "remediation.clock_uncertain_until": "2",
    "remediation.first_start": "3",
    "remediation.pause": '{"at":4,"reason":"by hand"}',
    "remediation.api_key_rejection": "{}",
    "remediation.acting_policies": '["warden.acting"]',
    "remediation.storm": '{"since":1,"until":2,"isActive":false}',
    "remediation.trust_cooldown": "untrusted",
    "remediation.canary.warden.paused": "fingerprint 1",
    "remediation.fallback.reboot-offline": "fingerprint 2",
    "remediation.condition.reboot-offline": "condition",
    "remediation.efficacy_since.reboot-offline": "5",
    "remediation.incidents":
      '{"onsets":[],"onsetGroups":[{"policy":"p","domain":"DE","at":6,"nodes":["n\\"place\\":"]}],"real":[],"dryRun":[{"domain":"FR","from":7,"to":8,"nodes":["node_1"],"until":null}]}',
    "collect.network_size": "{}",
    "month.used_before": "9",
  },
};
