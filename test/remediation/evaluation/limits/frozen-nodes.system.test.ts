import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { runAtOnce } from "../../../../src/base/steps.ts";
import type { Transport } from "../../../../src/model/ports.ts";
import type { RemediationConfig } from "../../../../src/remediation/context.ts";
import { defaultScenario } from "../../../../src/simulator/default-scenarios.ts";
import { startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { isLongRun } from "../../../harness/run-length.ts";
import { enforcedShippedPolicies } from "../../../harness/shipped-policies.ts";
import { actualNodes } from "../../../harness/simulator/actual-state.ts";

/** In the long form one node more than a fifth of the fleet, which would be a storm if they failed together. */
const NODES = isLongRun ? 4 : 2;
const FLEET = 15;
/** Interval between the failures of two nodes, so that they are not an incident. */
const APART_MINUTES = 15;
/** The policy requires 20 sessions, and demand falls at night. */
const SESSIONS_MIN = 30;
/**
 * About 20 minutes until the first episode is suspended, 30 minutes of cooldown, and a wait for `safety.max_actions`.
 */
const REBOOT_MINUTES_MAX = 2 * 60;
/** Time limit. With six actions an hour, about half of it is needed. */
const WAIT_MINUTES_MAX = 8 * 60;

/** The shipped configuration, but a node without sessions makes the condition of `heal-failing-sessions` unknown. */
function configWithUnknowns({ policies, ...config }: RemediationConfig): RemediationConfig {
  const when = "sessions.failed_ratio > 0.5";
  return {
    ...config,
    policies: policies.map((spec) => (spec.name === "heal-failing-sessions" ? { ...spec, when } : spec)),
  };
}

/** Wraps the service so that four in five sessions of the failing nodes have the status `error`. */
function failingSessions(failing: ReadonlySet<string>): (service: Transport) => Transport {
  return (service) => ({
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (!answer.ok || failing.size === 0 || !request.path.startsWith("/v1/sessions?")) return answer;
      const list = JSON.parse(Buffer.from(answer.value.body).toString());
      for (const session of list.data) {
        if (failing.has(session.node_id) && session.id.charCodeAt(session.id.length - 1) % 5 > 0)
          session.status = "error";
      }
      return { ok: true, value: { ...answer.value, body: Buffer.from(JSON.stringify(list)) } };
    },
    close: () => service.close(),
  });
}

/** What happened to one node. */
interface Course {
  readonly node: string;
  /** When it went offline; null: it did not yet. */
  offlineAt: number | null;
  /** Minutes from then until the reboot; null: it was not rebooted yet. */
  minutes: number | null;
}

test("nodes that go offline after a disconnect healed their sessions are rebooted, and none stays held", async () => {
  const { config, settings } = enforcedShippedPolicies();
  const failing = new Set<string>();
  const network = await startQuietNetwork({
    config: configWithUnknowns(config),
    settings,
    wrapTransport: failingSessions(failing),
    scenario: { nodes: FLEET, sessions: 650, service: { ...defaultScenario.service, listEndedSessions: true } },
  });
  const all = [...actualNodes(network.daemon.service)];
  // The only node of a region is not taken out while it is online.
  const busy = all.filter(
    ({ id, region, active_sessions: sessions }) =>
      sessions >= SESSIONS_MIN && all.some((other) => other.region === region && other.id !== id),
  );
  const courses = busy.slice(0, NODES).map(({ id }): Course => ({ node: id, offlineAt: null, minutes: null }));
  expect(courses).toHaveLength(NODES);
  const actionOf = (node: string, policy: string) =>
    network.actions().findLast((action) => action.node === node && action.policy === policy);

  function follow(course: Course) {
    const disconnect = actionOf(course.node, "heal-failing-sessions");
    if (disconnect !== undefined) failing.delete(course.node);
    if (disconnect?.outcome === "verified" && course.offlineAt === null) {
      course.offlineAt = network.daemon.clock.now();
      network.failNode(course.node);
    }
    const reboot = actionOf(course.node, "reboot-offline");
    if (reboot !== undefined) course.minutes = (reboot.sentAt! - course.offlineAt!) / MINUTE_MS;
  }

  for (let minute = 0; courses.some(({ minutes }) => minutes === null); minute++) {
    expect(minute).toBeLessThan(WAIT_MINUTES_MAX);
    const next = courses[minute / APART_MINUTES];
    if (next !== undefined) failing.add(next.node);
    await network.advance(MINUTE_MS);
    courses.forEach(follow);
  }
  expect(Math.max(...courses.map(({ minutes }) => minutes!))).toBeLessThan(REBOOT_MINUTES_MAX);
  await network.advance(HOUR_MS);
  expect(runAtOnce(network.controller().view.policies()).map(({ firing }) => firing)).toEqual([0, 0, 0, 0, 0, 0]);
  expect(network.controller().view.status()).toMatchObject({ stormUntil: null, breaker: null });
  expect(network.episodes().map(({ state }) => state)).toEqual(Array(2 * NODES).fill("healed"));
}, 300_000);
