import { type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import type { RenderInput } from "../../../src/metrics/families/family.ts";
import { createNetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import { COLLECTORS } from "../../../src/model/snapshot.ts";
import { render, textOf } from "../../metrics/naive-renderer.ts";
import type { DaemonProcess } from "../daemon/daemon-process.ts";
import type { SimulationParts } from "../daemon/simulation-parts.ts";

/** What is shown at the end of a run: samples by their series, as a scrape reads them. */
export type MetricsPage = ReadonlyMap<string, number>;

/** What is wrong with what is shown; null: it agrees with the service and with the journal. */
type MetricsInvariant = (page: MetricsPage, process: DaemonProcess, parts: SimulationParts) => string | null;

/** What changed later than this may not have been seen. */
const UNSETTLED_MS: DurationMs = 5 * MINUTE_MS;

/** What is shown once all is quiet. */
export const metricsInvariants: Readonly<Record<string, MetricsInvariant>> = {
  "metrics show every node, and no other": (page, process, parts) => {
    const { fleet } = parts.service.world;
    const shown = new Set(
      [...page.keys()].flatMap((series) => /^proxynet_node_info\{node_id="([^"]+)"/.exec(series)?.[1] ?? []),
    );
    const isSettled = settledAfter(process, parts);
    const moved = new Set(fleet.membershipChanges.filter(({ at }) => !isSettled(at)).map(({ id }) => id));
    const missing = fleet.nodes.filter(({ id }) => !shown.has(id) && !moved.has(id)).map(({ id }) => id);
    const present = new Set(fleet.nodes.map(({ id }) => id));
    const processEnded = [...shown].filter((id) => !present.has(id) && !moved.has(id));
    return missing.length + processEnded.length === 0 ? null : `missing: ${missing}; not in the fleet: ${processEnded}`;
  },
  "metrics show each node's status": (page, process, parts) => {
    const isSettled = settledAfter(process, parts);
    const wrong = parts.service.world.fleet.nodes.filter(
      ({ id, status, changedAt }) =>
        isSettled(changedAt) && page.get(`proxynet_node_status{node_id="${id}",status="${status}"}`) !== 1,
    );
    return wrong.length === 0 ? null : wrong.map(({ id, status }) => `${id} is ${status}`).join(", ");
  },
  "metrics count the nodes": (page, process, parts) => {
    const isSettled = settledAfter(process, parts);
    const { nodes, membershipChanges: moves } = parts.service.world.fleet;
    const unsettled = moves.filter(({ at }) => !isSettled(at)).length;
    const counted = sum(page, /^proxynet_nodes\{/);
    return Math.abs(counted - nodes.length) <= unsettled ? null : `${counted} are counted, of ${nodes.length}`;
  },
  "metrics show open episodes as the journal has them": (page, _life, { recordedState }) => {
    const open = [...recordedState.episodes.values()].filter(({ closedAt }) => closedAt === null);
    const wrong = open.filter(
      ({ node, policy, state }) =>
        ![...page.keys()].some(
          (series) => series.startsWith("proxywarden_node_episode{") && holdsAll(series, [node, policy, state]),
        ),
    );
    const shown = sum(page, /^proxywarden_node_episode\{/);
    if (wrong.length > 0) return `not shown: ${wrong.map(({ id, state }) => `${id} (${state})`)}`;
    return shown === open.length ? null : `${shown} are shown, of ${open.length}`;
  },
  "metrics count actions as the journal has them": (page, _life, { recordedState }) => {
    const wrong = (["verified", "ineffective"] as const).filter(
      (outcome) =>
        sum(page, new RegExp(`^proxywarden_actions_total\\{.*outcome="${outcome}"`)) !==
        (recordedState.endings.get(outcome) ?? 0),
    );
    return wrong.length === 0 ? null : `${wrong}: the journal has ${JSON.stringify([...recordedState.endings])}`;
  },
  "metrics show that nothing holds the fleet": (page) => {
    const wrong = [
      "proxywarden_trusted 1",
      "proxywarden_paused 0",
      "proxywarden_breaker_open 0",
      "proxywarden_journal_writable 1",
    ].filter((sample) => {
      const [name, value] = sample.split(" ") as [string, string];
      return page.get(name) !== Number(value);
    });
    return wrong.length === 0 ? null : `not so: ${wrong.join(", ")}`;
  },
  "explain knows every node, and its status": (_page, process, parts) => {
    const isSettled = settledAfter(process, parts);
    const { fleet } = parts.service.world;
    const unknown = fleet.nodes.filter(
      ({ id }) =>
        !fleet.membershipChanges.some((move) => move.id === id && !isSettled(move.at)) &&
        !process.remediation.view.explain(id).known,
    );
    return unknown.length === 0 ? null : `not known: ${unknown.map(({ id }) => id)}`;
  },
  "the journal has every action that the service carried out": (_page, _life, { posts, recordedState }) => {
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
  "the service received every action that the journal has": (_page, _life, { posts, recordedState }) => {
    const sent = new Set(posts.map(({ action }) => action?.id));
    const made = [...recordedState.actions.values()].filter(
      ({ id, shadow: dryRun, outcome }) =>
        !dryRun && (outcome === "verified" || outcome === "ineffective") && !sent.has(id),
    );
    // What was in doubt when the process was killed may never have left it.
    const false_ = made.filter(({ inDoubt }) => !inDoubt);
    return false_.length === 0 ? null : false_.map(({ id, node }) => `${id} of ${node}`).join(", ");
  },
};

/** Holds what is shown against all laws: names and details of those that are broken. */
export async function metricsViolations(
  parts: SimulationParts,
): Promise<readonly (readonly [law: string, detail: string])[]> {
  const process = parts.process!;
  parts.serviceNow();
  const page = await pageOf(process, parts);
  return Object.entries(metricsInvariants).flatMap(([name, invariant]) => {
    const broken = invariant(page, process, parts);
    return broken === null ? [] : [[name, broken] as const];
  });
}

/** Whether what changed at an instant of the service's clock must have been seen by now. */
function settledAfter(process: DaemonProcess, parts: SimulationParts): (at: number) => boolean {
  const unsettledMs = UNSETTLED_MS + 2 * (process.plan().nodes?.freshMs ?? 0);
  return (at) => at <= parts.serviceNow() - unsettledMs;
}

async function pageOf(process: DaemonProcess, parts: SimulationParts): Promise<MetricsPage> {
  const snapshot = process.snapshot()!;
  const plan = process.plan();
  const now = parts.clock.monotonic() - parts.bornAt;
  const input: RenderInput = {
    snapshot,
    now,
    serviceNowMs: process.serviceTime(now) ?? parts.clock.now(),
    staleAfterMs: Object.fromEntries(
      COLLECTORS.map((collector) => [collector, plan[collector]?.freshMs ?? 0]),
    ) as RenderInput["staleAfterMs"],
    options: {
      nodeLabels: ["name", "country", "region", "version"],
      topCustomers: 20,
      deny: new Set(),
      seriesMax: 2_000_000,
    },
  };
  const text = textOf(render(createNetworkRenderer(), input)) + (await process.metrics.render("text"));
  return new Map(
    text.split("\n").flatMap((line) => {
      const end = line.lastIndexOf(" ");
      return line.startsWith("#") || end < 0 ? [] : [[line.slice(0, end), Number(line.slice(end + 1))] as const];
    }),
  );
}

const sum = (page: MetricsPage, series: RegExp): number =>
  [...page].reduce((total, [name, value]) => total + (series.test(name) ? value : 0), 0);

const holdsAll = (series: string, values: readonly string[]): boolean =>
  values.every((value) => series.includes(`"${value}"`));
