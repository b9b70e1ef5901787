import type { NodeFixture } from "../../metrics/snapshot-fixtures.ts";
import { MAX_AGES, NOW, type SampledFleet } from "../verdicts/arbitrary-snapshot.ts";

/** Returns the known and fresh values of a node by field, taken directly from the description of a world. */
export function referenceReading(
  sampledFleet: SampledFleet,
  node: NodeFixture,
): Readonly<Record<string, string | number>> {
  const known: Record<string, string | number> = {};
  const note = (
    source: string,
    at: number | null | undefined,
    values: Readonly<Record<string, string | number | null | undefined>>,
  ) => {
    if (at === null || at === undefined || NOW - at > MAX_AGES[source]!) return;
    for (const [name, value] of Object.entries(values)) if (value !== null && value !== undefined) known[name] = value;
  };
  const { usageKnown } = sampledFleet;
  note("nodes", node.listedAt, {
    "node.name": node.name,
    "node.status": node.status === "unknown" ? null : node.status,
    "node.country": node.country,
    "node.region": node.region,
    "node.version": node.version,
    "node.last_seen": plausible(sampledFleet, node.lastSeenMs, node.listedAt),
    "node.uptime_hours": node.uptimeHours,
    "node.active_sessions": node.activeSessions,
    "node.bandwidth_gb": node.bandwidthGb,
    now: sampledFleet.skewMs === null ? null : sampledFleet.skewMs + node.listedAt!,
  });
  note("details", node.detailedAt, {
    "node.cpu_usage": usageKnown ? node.cpuUsage : null,
    "node.memory_usage": usageKnown ? node.memoryUsage : null,
    "node.disk_usage": usageKnown ? node.diskUsage : null,
    "node.created_at": plausible(sampledFleet, node.createdAtMs, node.detailedAt),
    "node.updated_at": plausible(sampledFleet, node.updatedAtMs, node.detailedAt),
  });
  note("sessions", sampledFleet.sessions?.observedFrom, sessionsOf(sampledFleet, node));
  if (sampledFleet.settledAt !== null) {
    const neighbours = sampledFleet.nodes.filter(({ region }) => region === node.region);
    const scopes = { fleet: sampledFleet.nodes, ...(node.region === undefined ? {} : { region: neighbours }) };
    for (const [scope, nodes] of Object.entries(scopes)) {
      const online = nodes.filter(({ status }) => status === "online").length;
      note("nodes", sampledFleet.settledAt, {
        [`${scope}.nodes`]: nodes.length,
        [`${scope}.online`]: online,
        [`${scope}.online_ratio`]: online / nodes.length,
      });
      note("details", NOW, {
        [`${scope}.median.cpu_usage`]: usageKnown ? median(nodes, ({ cpuUsage }) => cpuUsage) : null,
        [`${scope}.median.disk_usage`]: usageKnown ? median(nodes, ({ diskUsage }) => diskUsage) : null,
      });
    }
  }
  return known;
}

function plausible({ skewMs }: SampledFleet, timestamp: number | undefined, observedAt: number | undefined) {
  if (timestamp === undefined || skewMs === null) return timestamp;
  return timestamp - (skewMs + observedAt!) > 60_000 ? undefined : timestamp;
}

function sessionsOf({ sessions }: SampledFleet, node: NodeFixture) {
  if (sessions === null) return {};
  const row = sessions.byNode.find(({ id }) => id === node.id);
  const counts: Readonly<Record<string, number>> = row?.counts ?? {};
  const of = (status: string) => counts[status] ?? 0;
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  // Failures that are still listed prove nothing at first, and later that there are no new ones.
  const quiet = row?.quietWalks ?? 0;
  const past = (failures: number) => failures > 0 && (quiet === 1 || quiet === 2);
  const ofNow = (failures: number) => (quiet >= 3 ? 0 : failures);
  const failed = of("error") + of("timeout");
  const clear = of("unknown") === 0;
  return {
    "sessions.total": total,
    "sessions.active": clear ? of("active") : null,
    "sessions.error": clear && sessions.failedListed && !past(of("error")) ? ofNow(of("error")) : null,
    "sessions.failed_ratio":
      clear && sessions.failedListed && !past(failed) && total > 0 ? ofNow(failed) / total : null,
  };
}

function median(nodes: readonly NodeFixture[], read: (node: NodeFixture) => number | undefined): number | null {
  const values = nodes
    .filter(({ detailedAt }) => detailedAt !== undefined && NOW - detailedAt <= MAX_AGES.details!)
    .flatMap((node) => read(node) ?? []);
  if (values.length === 0 || values.length < nodes.length / 2) return null;
  values.sort((a, b) => a - b);
  const low = values[Math.floor((values.length - 1) / 2)]!;
  const high = values[Math.ceil((values.length - 1) / 2)]!;
  return (low + high) / 2;
}
