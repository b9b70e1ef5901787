import { byName } from "../../../src/base/by-name.ts";
import { type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import { STARTING_MS, statedStatus } from "../../../src/simulator/api/node-view.ts";
import { render, textOf } from "../../metrics/naive-renderer.ts";
import { renderInput } from "../../metrics/snapshot-fixtures.ts";
import type { DaemonProcess } from "../daemon/daemon-process.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** A scrape of all metrics: values by series. */
export type MetricsPage = ReadonlyMap<string, number>;

/** Returns what is wrong with the metrics, or null if they agree with the service and the journal. */
type MetricsInvariant = (page: MetricsPage, process: DaemonProcess, parts: SimulationParts) => string | null;

/** Maximum age of a change that may not be observed yet. */
const UNSETTLED_MS: DurationMs = 5 * MINUTE_MS;

/** Invariants of the metrics, `explain` and the journal at the end of the quiet period. */
export const metricsInvariants: Readonly<Record<string, MetricsInvariant>> = {
  "metrics show every node, and no other": (page, process, parts) => {
    const { fleet } = parts.service.network;
    const exported = new Set(
      [...page.keys()].flatMap((series) => /^proxynet_node_info\{node_id="([^"]+)"/.exec(series)?.[1] ?? []),
    );
    const isSettled = settledAfter(process, parts);
    const moved = new Set(fleet.membershipChanges.filter(({ at }) => !isSettled(at)).map(({ id }) => id));
    const missing = fleet.nodes.filter(({ id }) => !exported.has(id) && !moved.has(id)).map(({ id }) => id);
    const present = new Set(fleet.nodes.map(({ id }) => id));
    const removed = [...exported].filter((id) => !present.has(id) && !moved.has(id));
    return missing.length + removed.length === 0 ? null : `missing: ${missing}; not in the fleet: ${removed}`;
  },
  "metrics show each node's status": (page, process, parts) => {
    const isSettled = settledAfter(process, parts);
    const wrong = parts.service.network.fleet.nodes.filter((node) => {
      const status = statedStatus(parts.service, node);
      const changedAt = Math.max(node.changedAt, node.aliveSince + STARTING_MS);
      return isSettled(changedAt) && page.get(`proxynet_node_status{node_id="${node.id}",status="${status}"}`) !== 1;
    });
    return wrong.length === 0 ? null : wrong.map(({ id, status }) => `${id} is ${status}`).join(", ");
  },
  "metrics count the nodes": (page, process, parts) => {
    const isSettled = settledAfter(process, parts);
    const { nodes, membershipChanges: moves } = parts.service.network.fleet;
    const unsettled = moves.filter(({ at }) => !isSettled(at)).length;
    const counted = sum(page, /^proxynet_nodes\{/);
    return Math.abs(counted - nodes.length) <= unsettled ? null : `${counted} of ${nodes.length} nodes are counted`;
  },
  "metrics agree with the journal on open episodes": (page, _process, { recordedState }) => {
    const open = [...recordedState.episodes.values()].filter(({ closedAt }) => closedAt === null);
    const wrong = open.filter(
      ({ node, policy, state }) =>
        ![...page.keys()].some(
          (series) => series.startsWith("proxywarden_node_episode{") && hasLabelValues(series, [node, policy, state]),
        ),
    );
    const exported = sum(page, /^proxywarden_node_episode\{/);
    if (wrong.length > 0) return `not exported: ${wrong.map(({ id, state }) => `${id} (${state})`)}`;
    return exported === open.length ? null : `${exported} episodes are exported, ${open.length} are open`;
  },
  "metrics agree with the journal on ended actions": (page, _process, { recordedState }) => {
    const wrong = (["verified", "ineffective"] as const).filter(
      (outcome) =>
        sum(page, new RegExp(`^proxywarden_actions_total\\{.*outcome="${outcome}"`)) !==
        (recordedState.endedActions.get(outcome) ?? 0),
    );
    return wrong.length === 0 ? null : `${wrong}: the journal has ${JSON.stringify([...recordedState.endedActions])}`;
  },
  "metrics show no hold of all actions": (page, process) => {
    const { roundFailure } = process.remediation.view.status();
    if (roundFailure !== null) return roundFailure;
    const wrong = [
      "proxywarden_trusted 1",
      "proxywarden_paused 0",
      "proxywarden_breaker_open 0",
      "proxywarden_journal_writable 1",
    ].filter((sample) => {
      const [name, value] = sample.split(" ") as [string, string];
      return page.get(name) !== Number(value);
    });
    return wrong.length === 0 ? null : `expected ${wrong.join(", ")}`;
  },
  "explain knows every node": (_page, process, parts) => {
    const isSettled = settledAfter(process, parts);
    const { fleet } = parts.service.network;
    const unknown = fleet.nodes.filter(
      ({ id }) =>
        !fleet.membershipChanges.some((move) => move.id === id && !isSettled(move.at)) &&
        !runAtOnce(process.remediation.view.explain(id)).known,
    );
    return unknown.length === 0 ? null : `unknown: ${unknown.map(({ id }) => id)}`;
  },
  "the journal has every action that the service executed": (_page, _process, { posts, recordedState }) => {
    const lost = posts.filter(({ answer, action }) => {
      const row = recordedState.actions.get(action?.id ?? "");
      return (
        typeof answer === "number" &&
        answer < 300 &&
        (row === undefined || row.sentAt === null || row.state === "withdrawn")
      );
    });
    return lost.length === 0
      ? null
      : lost.map(({ kind, node, action }) => `${kind} of ${node} (${action?.id})`).join(", ");
  },
  "the service received every action that the journal has": (_page, _process, { posts, recordedState }) => {
    const sent = new Set(posts.map(({ action }) => action?.id));
    const unsent = [...recordedState.actions.values()].filter(
      // An action in doubt may not have been sent before the process was killed.
      ({ id, dryRun, outcome, inDoubt }) =>
        !dryRun && !inDoubt && (outcome === "verified" || outcome === "ineffective") && !sent.has(id),
    );
    return unsent.length === 0 ? null : unsent.map(({ id, node }) => `${id} of ${node}`).join(", ");
  },
};

/** Checks the current metrics. Returns the names and details of the violated invariants. */
export async function metricsViolations(
  parts: SimulationParts,
): Promise<readonly (readonly [invariant: string, detail: string])[]> {
  const process = parts.process!;
  parts.serviceNow();
  const page = await pageOf(process, parts);
  return Object.entries(metricsInvariants).flatMap(([name, invariant]) => {
    const detail = invariant(page, process, parts);
    return detail === null ? [] : [[name, detail] as const];
  });
}

/** Returns whether a change at a time on the service's clock must have been observed by now. */
function settledAfter(process: DaemonProcess, parts: SimulationParts): (at: number) => boolean {
  const unsettledMs = UNSETTLED_MS + 2 * (process.plan().nodes?.freshMs ?? 0);
  return (at) => at <= parts.serviceNow() - unsettledMs;
}

async function pageOf(process: DaemonProcess, parts: SimulationParts): Promise<MetricsPage> {
  const snapshot = process.snapshot()!;
  const plan = process.plan();
  const now = process.monotonic();
  const input = renderInput(snapshot, {
    now,
    serviceNowMs: process.serviceTime(now) ?? parts.clock.now(),
    staleAfterMs: byName(COLLECTORS, (collector) => plan[collector]?.freshMs ?? 0),
  });
  const text = textOf(render(new NetworkRenderer(), input)) + (await process.metrics.render("text"));
  return new Map(
    text.split("\n").flatMap((line) => {
      const end = line.lastIndexOf(" ");
      return line.startsWith("#") || end < 0 ? [] : [[line.slice(0, end), Number(line.slice(end + 1))] as const];
    }),
  );
}

const sum = (page: MetricsPage, series: RegExp): number =>
  [...page].reduce((total, [name, value]) => total + (series.test(name) ? value : 0), 0);

const hasLabelValues = (series: string, values: readonly string[]): boolean =>
  values.every((value) => series.includes(`"${value}"`));
