import { defineGuard, defineSimpleGuard, type HoldReasonRow } from "./guard-types.ts";

/** Holds every node while an operator has paused actions. */
const pauseGuard = defineSimpleGuard({
  reason: "paused",
  counts: "operator commands",
  condition: "an operator paused all actions",
  ends: "with `resume`, or after the duration given with `--for`",
  operatorAction: "`resume` once the reason that `status` shows no longer applies",
  alert: "ProxywardenPaused",
  policyWide: true,
  details: (_candidate, { pauseDetail }) => (pauseDetail === null ? [] : [pauseDetail]),
});

/** Holds every node while this daemon can't record actions. */
const journalGuard = defineSimpleGuard({
  reason: "journal",
  counts: "writes to the journal",
  condition: "the last write failed, or this daemon's lease has ended, so no action can be recorded",
  ends: "automatically, with the next write that succeeds, or once the lease is renewed or another daemon leads",
  operatorAction:
    "with `state.path`, free disk space or repair the folder; with `state.postgres`, repair the database or the connection to it",
  alert: "ProxywardenJournalNotWritable",
  policyWide: true,
  appliesToNotify: true,
  details: (_candidate, { journalError }) => (journalError === null ? [] : [journalError]),
});

/** Holds every node after the service rejected the API key. */
const credentialsGuard = defineSimpleGuard({
  reason: "credentials",
  counts: "responses to actions, and to the reads before them",
  condition:
    "the service answered an action, or the read of the node before it, with 401 or 403; a repeated 403 for one node within two hours does not count if an action on another node was accepted in between",
  ends: "automatically after 15 minutes, when one action is tried",
  operatorAction: "renew the API key, or give it the scope `nodes:write`",
  alert: "ProxywardenApiKeyRefused",
  policyWide: true,
  details: (_candidate, { credentialsError }) => (credentialsError === null ? [] : [credentialsError]),
});

/** Returns the row of a reason not to trust fleet data. */
const untrusted = (row: HoldReasonRow): HoldReasonRow => ({ ...row, alert: "ProxywardenUntrusted", policyWide: true });

/** Holds every node while fleet data is not trusted. */
const trustGuard = defineGuard({
  reasons: {
    warming_up: untrusted({
      counts: "complete walks since the start",
      condition: "there are fewer than `safety.trust.warmup_walks`",
      ends: "automatically, after a few walks",
    }),
    inventory_incomplete: untrusted({
      counts: "nodes that the last walk missed, and the age of the last complete walk",
      condition: "the walk was cut off, missed more than `safety.trust.max_missing`, or is no longer fresh",
      ends: "automatically, with the next complete walk; after `accept-inventory`, a complete walk may miss as many nodes as the last one did",
      operatorAction:
        "find out why the list is incomplete, or which limit delays the next walk (the detail names it); `accept-inventory` if the missing nodes do not exist; raise `safety.trust.max_missing` if a page stays unreadable",
    }),
    inventory_shrunk: untrusted({
      counts: "nodes of the last walk",
      condition:
        "there are fewer than `safety.trust.min_inventory` of the nodes in the largest walk of the last 7 days",
      ends: "automatically once they are back or 7 days have passed, or with `accept-inventory`",
      operatorAction: "`accept-inventory` if the nodes were removed on purpose",
    }),
    inventory_unknown: untrusted({
      counts: "records that are unreadable or have an unknown status",
      condition: "there are more than `safety.trust.max_unknown`",
      ends: "automatically, with the next walk that shows fewer",
      operatorAction: "see the log, which names an example; ask the service's operator what changed",
    }),
    last_seen_stale: untrusted({
      counts: "the age of the freshest `last_seen` of the fleet",
      condition: "it is older than `safety.trust.max_freshest_last_seen`",
      ends: "automatically, once the service receives node reports again",
      operatorAction:
        "check why the service receives no node reports, and whether all its servers send the right Date header and state times by the same clock",
    }),
    service_clock: untrusted({
      counts: "Date headers and, after downtime, their difference from the wall clock",
      condition:
        "no response had a Date header, or no two agree yet; after downtime, the wall clock and the service's Date disagree; the wall clock was changed, or the machine was suspended; or the journal's clock was behind, at startup or after a suspension, and was corrected",
      ends: "automatically, once two responses have Date headers that agree; once the clocks agree, or after an hour at the latest; after the next walk of the nodes, if the wall clock was changed or the machine was suspended; or an hour after the correction",
      operatorAction:
        "configure the proxy in front of the service to keep the Date header; correct the wall clock; if the detail says that it keeps changing, fix the machine's time synchronization",
    }),
    sight_cooldown: untrusted({
      counts: "the time since fleet data became trusted again",
      condition: "it is shorter than `safety.storm_cooldown`",
      ends: "automatically, after `safety.storm_cooldown`",
      operatorAction: "if it keeps starting over, remove the cause that the detail names",
    }),
  },
  appliesToNotify: true,
  check: (_candidate, { trustBlockers }) => trustBlockers,
});

/** The guards that hold every node because of the daemon itself. */
export const DAEMON_GUARDS = [pauseGuard, journalGuard, credentialsGuard, trustGuard];
