import { MINUTE_MS } from "../../../../src/base/duration.ts";
import type { PolicySpec } from "../../../../src/config/schema/policy.ts";
import { findNode } from "../../../../src/simulator/fleet/fleet.ts";
import { clockSkewAt } from "../../../../src/simulator/http/faults.ts";
import { type ListRecord, parseBody, recordsOf } from "../../daemon/observations.ts";
import type { PostAttempt, SimulationParts } from "../../daemon/simulation-parts.ts";
import { createOutageModel, type OutageModel, type ShownNode } from "./outage-model.ts";

/** Checks actions on nodes whose region is cut off. */
export interface RegionOutages {
  startProcess(): void;
  recordPage(body: Uint8Array): void;
  recordRead(status: number, body: Uint8Array): void;
  recordCommit(): void;
  /** Call at every step and after every snapshot. */
  update(): void;
  /** Returns a description if a POST acts on a node because its region is cut off, or null if it does not. */
  violationOf(post: PostAttempt): string | null;
}

/** Reasons for which the daemon forgets which nodes it has seen healthy. */
const UNTRUSTED_REASONS: ReadonlySet<string> = new Set([
  "inventory_incomplete",
  "inventory_shrunk",
  "inventory_unknown",
  "last_seen_stale",
  "service_clock",
]);

/** Age of `last_seen` above which the condition of {@link outagePolicyOf} holds. */
const SILENT_MS = 5 * MINUTE_MS;
const OFFLINE = 'node.status == "offline"';
const SILENT = `${OFFLINE} && now - node.last_seen > duration("5m")`;

/** Creates the checks of a simulation. */
export function createRegionOutages(parts: () => SimulationParts): RegionOutages {
  const model: OutageModel = createOutageModel({
    limits: () => parts().config.safety.correlated,
    cooldownMs: () => parts().config.safety.stormCooldownMs,
    nodesIn: (domain) => nodesIn(parts(), domain),
    maxAgeMs: () => outagePolicyOf(parts())?.maxAgeMs ?? parts().process?.plan().nodes?.freshMs ?? 0,
    isTreated: (node) => {
      const { open, episodes } = parts().recordedState;
      return [...open].some((id) => episodes.get(id)?.node === node);
    },
  });
  let followed = "";
  const now = () => parts().clock.monotonic() + parts().forwardMs;

  /** Forgets what a policy that is new, or did not act before, does not know. */
  function followPolicy(): void {
    const spec = outagePolicyOf(parts());
    const current = JSON.stringify([spec?.name, spec?.when, spec?.match, parts().config.safety.correlated.by]);
    if (current !== followed) model.forgetIncidents();
    followed = current;
  }

  function observe(records: readonly ListRecord[]): void {
    const spec = outagePolicyOf(parts());
    followPolicy();
    if (spec !== null)
      model.observe(
        records.flatMap((record) => shownNode(record, spec, parts()) ?? []),
        now(),
      );
  }

  return {
    startProcess: () => model.startProcess(),
    recordPage: (body) => observe(recordsOf(body)),
    recordRead: (status, body) => (status === 200 ? observe([parseBody(body) as ListRecord]) : undefined),
    recordCommit: () => model.recordCommit(now()),
    update() {
      const { process: daemonProcess, machine } = parts();
      followPolicy();
      // The view must not be read while the machine is suspended, because that runs the daemon's code.
      const isRunning = daemonProcess?.isAlive() === true && !machine.isSuspended();
      const isSettled = (daemonProcess?.snapshot()?.fleet.settledAt ?? null) !== null;
      const isUntrusted = () =>
        daemonProcess!.remediation.view.status().trust.some(({ reason }) => UNTRUSTED_REASONS.has(reason));
      if (!isRunning || !isSettled || isUntrusted()) model.forgetHealth();
      model.endIncidents((id) => isCutOff(parts(), id), now());
    },
    violationOf({ node, steppedAt }) {
      if (!isCutOff(parts(), node)) return null;
      followPolicy();
      model.endIncidents((id) => isCutOff(parts(), id), now());
      const incident = model.incidentOf(node, steppedAt);
      if (incident === null) return null;
      const sinceMin = Math.round((steppedAt - incident.to) / MINUTE_MS);
      return `it failed with ${incident.nodes.size - 1} other nodes of ${incident.domain}, the last ${sinceMin} min ago`;
    },
  };
}

/** Returns the policy on nodes that are offline, or null if there is none that acts. */
function outagePolicyOf({ config, recordedState: { facts } }: SimulationParts): PolicySpec | null {
  const spec = config.policies.find(({ when }) => when === OFFLINE || when === SILENT);
  const isActing = spec !== undefined && config.safety.mode !== "dry_run" && spec.mode !== "dry_run";
  return isActing && (facts.get(`remediation.fallback.${spec.name}`) ?? null) === null ? spec : null;
}

/** Returns what a record shows, or null if it is invalid or the policy does not match the node. */
function shownNode({ id, status, last_seen }: ListRecord, spec: PolicySpec, parts: SimulationParts): ShownNode | null {
  const node = typeof id === "string" ? findNode(parts.service.network.fleet, id) : null;
  const lastSeenMs = typeof last_seen === "string" ? Date.parse(last_seen) : Number.NaN;
  if (node === null || (status !== "offline" && status !== "online") || Number.isNaN(lastSeenMs)) return null;
  if (spec.match !== null && spec.match === `node.region != "${node.region}"`) return null;
  const trueTime = parts.serviceNow();
  const silentMs = trueTime + clockSkewAt(parts.service.network.faultSchedule, trueTime) - lastSeenMs;
  const isUnhealthy = status === "offline" && (spec.when === OFFLINE || silentMs > SILENT_MS);
  return { id: node.id, domain: node[parts.config.safety.correlated.by], isUnhealthy, lastSeenMs };
}

/** Returns the number of nodes in a region or country, actually or as the daemon knows them, whichever is larger. */
function nodesIn({ service, config, process: daemonProcess }: SimulationParts, domain: string): number {
  const { by } = config.safety.correlated;
  const actual = service.network.fleet.nodes.filter((node) => node[by] === domain).length;
  const fleet = daemonProcess?.snapshot()?.fleet;
  const known = fleet?.ids.filter(
    (id, slot) => id !== "" && fleet.locations[fleet.locationIndex[slot]!]![by] === domain,
  );
  return Math.max(actual, known?.length ?? 0);
}

function isCutOff({ service }: SimulationParts, id: string): boolean {
  const node = findNode(service.network.fleet, id);
  return node?.isRegionDown === true && node.status === "offline";
}
