import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { NetworkRenderer } from "../../../src/metrics/render/renderer.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { listsAndDetailsSettings, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import {
  everyMinuteSettings,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { changingBodies } from "../../harness/simulator/changed-responses.ts";
import { render, textOf } from "../../metrics/naive-renderer.ts";
import { renderInput } from "../../metrics/snapshot-fixtures.ts";

const NODES = 200;

/** Runs a daemon for three minutes over valid records, then for seven minutes with a share of invalid ones. */
async function startWithUnusualRecords(spoiled: number): Promise<VirtualDaemon> {
  const fault = { afterMs: 3 * MINUTE_MS, forMs: 60 * MINUTE_MS, fault: { kind: "bad_records", spoiled } } as const;
  const daemon = await startVirtualDaemon({
    scenario: { nodes: NODES, sessions: 400, faults: [fault] },
    settings: { schedules: { ...everyMinuteSettings.schedules, details: null } },
  });
  await daemon.clock.advance(10 * MINUTE_MS);
  return daemon;
}

test("invalid records are counted by reason, and neither remove nodes nor fail walks", async () => {
  const daemon = await startWithUnusualRecords(0.2);
  expect(daemon.snapshots.last!.fleet.count).toBe(NODES);
  expect(daemon.collectorManager.collectorHealth().nodes.failure).toBeNull();
  const page = await daemon.metrics.render("text");
  for (const reason of ["wrong_type", "missing_id", "unknown_status", "bad_time"]) {
    expect(page).toMatch(new RegExp(`records_rejected_total\\{collector="nodes",reason="${reason}"\\} [1-9]`));
    const lines = daemon.log.lines.filter(({ fields }) => fields.reason === reason && fields.collector === "nodes");
    expect(lines).toMatchObject([{ level: "warn", message: "records do not match the API documentation" }]);
  }
  await stopVirtualDaemon(daemon);
});

test("an invalid field does not affect other fields of the node", async () => {
  const daemon = await startWithUnusualRecords(1);
  const { fleet } = daemon.snapshots.last!;
  const fresh = [...fleet.listedAt].filter((at) => daemon.clock.monotonic() - at < 2 * MINUTE_MS);
  // Two of the eleven kinds of fault remove the id; nodes with any other are still read.
  expect(fresh.length / NODES).toBeGreaterThan(0.75);
  expect(fleet.lastWalk!.rejected / NODES).toBeLessThan(0.25);
  await stopVirtualDaemon(daemon);
});

test("invalid records do not duplicate series", async () => {
  const daemon = await startWithUnusualRecords(1);
  const snapshot = daemon.snapshots.last!;
  const options = { topCustomers: 1_000 };
  const page = textOf(render(new NetworkRenderer(), renderInput(snapshot, { now: snapshot.at, options })));
  const series = page
    .split("\n")
    .flatMap((line) => (line === "" || line.startsWith("#") ? [] : [/^.*(?= )/.exec(line)![0]]));
  expect(series.length).toBeGreaterThan(NODES);
  expect(series.filter((each, index) => series.indexOf(each) !== index)).toEqual([]);
  await stopVirtualDaemon(daemon);
});

test("an outdated replica that shows a node as healthy, so that it never fires, is counted and named", async () => {
  const outdated = new Map<string, Uint8Array>();
  let isOutdated = false;
  let pages = 0;
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (!answer.ok || !request.path.startsWith("/v1/nodes?")) return answer;
      if (!isOutdated) outdated.set(request.path, answer.value.body);
      const body = isOutdated && pages++ % 2 === 0 ? outdated.get(request.path) : undefined;
      return body === undefined ? answer : { ok: true, value: { ...answer.value, body } };
    },
  });
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), wrapTransport });
  isOutdated = true;
  const [node] = network.nodes();
  network.failNode(node!);
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  const page = await network.daemon.metrics.render("text");
  expect(page).toMatch(/records_rejected_total\{collector="nodes",reason="older_record"\} \d\d/);
  const warnings = network.daemon.log.lines.filter(({ fields }) => fields.reason === "older_record");
  expect(warnings[0]).toMatchObject({ message: "records contradict each other", fields: { id: node } });
});

/** Fails a node of which the service also states that it is online, and returns what shows that it is never acted on. */
async function failContradictedNode(contradict: (body: string, path: string, node: string) => string | null) {
  let failed = "";
  const wrapTransport = changingBodies((body, { path, method }) =>
    method === "GET" && failed !== "" ? contradict(body, path, failed) : null,
  );
  const config = remediationConfig([rebootOffline({ forMs: 15 * MINUTE_MS })]);
  const network = await startQuietNetwork({ config, wrapTransport, settings: listsAndDetailsSettings });
  const [node, other] = network.nodes();
  failed = node!;
  network.failNode(node!);
  await network.advance(35 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  network.failNode(other!);
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  const named = network.daemon.log.lines.filter(({ fields }) => fields.reason === "contradicting_status");
  return { node, named, page: await network.daemon.metrics.render("text") };
}

test("a list that shows a node twice, with two statuses, so that it never fires, is counted and named", async () => {
  const { node, named, page } = await failContradictedNode((body, path, failed) => {
    if (!path.startsWith("/v1/nodes?")) return null;
    const list = JSON.parse(body);
    const again = list.data.filter(({ id }: { readonly id: string }) => id === failed);
    return JSON.stringify({
      ...list,
      data: [...again.map((record: object) => ({ ...record, status: "online" })), ...list.data],
    });
  });
  expect(named[0]).toMatchObject({ message: "records contradict each other", fields: { id: node } });
  expect(page).toMatch(/records_rejected_total\{collector="nodes",reason="contradicting_status"\} \d\d/);
});

test("details that contradict the list, so that a node never fires, are counted and named", async () => {
  const { node, named, page } = await failContradictedNode((body, path, failed) =>
    path === `/v1/nodes/${failed}` ? JSON.stringify({ ...JSON.parse(body), status: "online" }) : null,
  );
  expect(named[0]).toMatchObject({ fields: { id: node } });
  expect(page).toMatch(/records_rejected_total\{collector="nodes",reason="contradicting_status"\} [1-9]/);
});
