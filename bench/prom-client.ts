import { Gauge, Registry } from "prom-client";
import { NODE_STATUSES } from "../src/model/node.ts";
import { measure, serveRounds } from "./bench-process.ts";
import { createFleetSource } from "./fleet.ts";

const source = createFleetSource(Number(process.argv[2]));
const registry = new Registry();
const gauge = <Label extends string>(name: string, labelNames: Label[]) =>
  new Gauge({ name: `proxynet_node_${name}`, help: name, labelNames, registers: [registry] });

const info = gauge("info", ["node_id", "name", "country", "region", "version"]);
const status = gauge("status", ["node_id", "status"]);
const lastSeen = gauge("last_seen_timestamp_seconds", ["node_id"]);
const uptime = gauge("uptime_seconds", ["node_id"]);
const activeSessions = gauge("active_sessions", ["node_id"]);
const cpuUsage = gauge("cpu_usage_ratio", ["node_id"]);
const memoryUsage = gauge("memory_usage_ratio", ["node_id"]);
const diskUsage = gauge("disk_usage_ratio", ["node_id"]);
let text = "";

async function refresh() {
  const fleet = source.next(1);
  if (text === "") {
    for (const [slot, id] of fleet.ids.entries()) {
      const { country, region } = fleet.locations[fleet.locationIndex[slot]!]!;
      info.set({ node_id: id, name: fleet.name[slot]!, country, region, version: fleet.version[slot]! }, 1);
    }
  }
  return measure(async () => {
    for (let slot = 0; slot < fleet.slots; slot++) {
      const labels = { node_id: fleet.ids[slot]! };
      for (const [index, state] of NODE_STATUSES.entries()) {
        status.set({ ...labels, status: state }, fleet.status[slot] === index ? 1 : 0);
      }
      lastSeen.set(labels, fleet.lastSeenMs.at(slot) / 1_000);
      uptime.set(labels, fleet.uptimeHours.at(slot) * 3_600);
      activeSessions.set(labels, fleet.activeSessions.at(slot));
      cpuUsage.set(labels, fleet.cpuUsage.at(slot));
      memoryUsage.set(labels, fleet.memoryUsage.at(slot));
      diskUsage.set(labels, fleet.diskUsage.at(slot));
    }
    text = await registry.metrics();
  });
}

serveRounds({
  full: refresh,
  text: () => Promise.resolve(text),
  rss: () => Promise.resolve((process.resourceUsage().maxRSS * 1_024) / 1e6),
});
