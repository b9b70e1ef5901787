import { describe, expect, test } from "vitest";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import type { Transport } from "../../../../src/model/ports.ts";
import type { Action } from "../../../../src/model/remediation/episode.ts";
import { defaultServiceOptions } from "../../../../src/simulator/default-scenarios.ts";
import {
  noFailureRates,
  ONE_NODE,
  onePerRegion,
  type QuietNetworkOptions,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";
import { actionLines, holdReasonsOf } from "../../../harness/remediation-results.ts";
import { isLongRun } from "../../../harness/run-length.ts";
import { changingBodies } from "../../../harness/simulator/changed-responses.ts";

/** Wraps the service so that it shows another status than `quarantined`. */
const showingQuarantineAs = (status: string) =>
  changingBodies((body, { method }) =>
    method === "GET" ? body.replaceAll('"quarantined"', JSON.stringify(status)) : null,
  );

/** A policy that quarantines online nodes. */
const quarantineFor = (durationMs: DurationMs, nodes: readonly string[]) =>
  rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: 'node.status == "online"',
    steps: [{ ...steps.quarantine, durationMs }],
  });

/** Longer than any time for which an action counts as recent, and shorter than the time until a retry. */
const QUARANTINE_MS = 3 * HOUR_MS;

const twoDisrupted = { ...withoutLimits, maxDisrupted: { share: 1, amount: 2 } };

// The spec does not state the status of a quarantined node (section 3.1).
const STATUSES = isLongRun ? ["maintenance", "offline", "disabled"] : ["offline", "disabled"];

describe.each(STATUSES)("if quarantined nodes have the status %s", (status) => {
  test("max_disrupted counts them until their quarantine ends", async () => {
    const wrapTransport = showingQuarantineAs(status);
    const network = await startQuietNetwork({ config: remediationConfig([]), wrapTransport });
    const four = onePerRegion(network, 4);
    await network.reload({ config: remediationConfig([quarantineFor(QUARANTINE_MS, four)], twoDisrupted) });
    await network.advance(2 * HOUR_MS);
    expect(four.map(network.status).toSorted()).toEqual(["online", "online", "quarantined", "quarantined"]);
    expect(holdReasonsOf(network)).toContain("disrupted");
    await network.advance(1.5 * HOUR_MS);
    expect(network.postCount()).toBe(4);
  });

  test("max_disrupted counts them after their quarantine should have ended, until the service ends it", async () => {
    const wrapTransport = showingQuarantineAs(status);
    const network = await startQuietNetwork({ config: remediationConfig([]), wrapTransport });
    const four = onePerRegion(network, 4);
    await network.reload({ config: remediationConfig([quarantineFor(30 * MINUTE_MS, four)], twoDisrupted) });
    await network.advanceUntil(() => network.postCount() === 2);
    const quarantined = four.filter((node) => network.status(node) === "quarantined");
    for (const node of quarantined) network.interventions.quarantine(node, START_MS + DAY_MS);
    await network.advance(HOUR_MS);
    expect(network.postCount()).toBe(2);
    const waiting = four.find((node) => network.status(node) === "online")!;
    expect(network.explain(waiting).policies[0]!.blockers).toMatchObject([
      {
        reason: "disrupted",
        detail: expect.stringMatching(/until (the service or an operator ends it|they are available)/),
      },
    ]);
    for (const node of quarantined) network.interventions.liftQuarantine(node);
    await network.advance(5 * MINUTE_MS);
    expect(network.postCount()).toBe(4);
  });
});

test("a node that is offline because of our quarantine is not rebooted by another policy", async () => {
  const node = ONE_NODE;
  const config = remediationConfig([rebootOffline(), { ...quarantineFor(QUARANTINE_MS, [node]), name: "hide" }]);
  const network = await startQuietNetwork({ config, wrapTransport: showingQuarantineAs("offline") });
  await network.advance(2.5 * HOUR_MS);
  expect(actionLines(network)).toEqual(["quarantine: verified"]);
  expect(network.explain(node).policies[0]!.blockers).toMatchObject([{ reason: "other_episode" }]);
  await network.advance(HOUR_MS);
  expect(network.status(node)).toBe("online");
  expect(actionLines(network)).toEqual(["quarantine: verified"]);
});

// Neither is the status of a rebooting node.
describe("a node that is shown as online while it reboots", () => {
  const scenario = { service: { ...defaultServiceOptions, rebootStatus: "online" as const } };
  const node = ONE_NODE;

  /** Starts a network, lets the node fail, and returns its reboot. */
  async function rebootedNode(options: Partial<QuietNetworkOptions> = {}): Promise<Action> {
    const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), scenario, ...options });
    network.failNode(node);
    await network.advance(30 * MINUTE_MS);
    expect(network.actions()).toMatchObject([{ outcome: "verified", proof: "uptime_fell" }]);
    return network.actions()[0]!;
  }

  test("is verified once it reports again", async () => {
    const { sentAt, endedAt } = await rebootedNode();
    expect(endedAt! - sentAt!).toBeGreaterThanOrEqual(noFailureRates.rebootMs);
  });

  test("is not verified by a last_seen that is later than the service's Date", async () => {
    const lastSeen = new RegExp(`("id":"${node}".*?"last_seen":")2026`, "g");
    const wrapTransport = changingBodies((body) => body.replaceAll(lastSeen, "$12027"));
    const { sentAt, endedAt } = await rebootedNode({ wrapTransport });
    expect(endedAt! - sentAt!).toBeGreaterThanOrEqual(noFailureRates.rebootMs);
  });

  test("is not verified by a list whose Date contradicts the other responses", async () => {
    let isNext = false;
    const wrapTransport = (service: Transport): Transport => ({
      ...service,
      async request(request, signal) {
        const result = await service.request(request, signal);
        const isChanged = isNext && result.ok && request.path.startsWith("/v1/nodes?");
        if (isChanged || request.method === "POST") isNext = !isChanged;
        if (!isChanged) return result;
        const date = new Date(Date.parse(result.value.headers.date!) + HOUR_MS).toUTCString();
        return { ...result, value: { ...result.value, headers: { ...result.value.headers, date } } };
      },
    });
    const { sentAt, endedAt } = await rebootedNode({ wrapTransport });
    expect(endedAt! - sentAt!).toBeGreaterThanOrEqual(noFailureRates.rebootMs);
  });
});
