import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { SessionWalkHistory } from "../../../src/inventory/sessions/session-walks.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { everyMinuteSettings } from "../../harness/daemon/virtual-daemon.ts";
import { remediationConfig } from "../../harness/policies.ts";
import { changingBodies } from "../../harness/simulator/changed-responses.ts";

/** Returns a history whose last trusted walk showed this many sessions. */
function historyAfter(seen: number): SessionWalkHistory {
  const history = new SessionWalkHistory();
  expect(history.dropped(seen, null)).toBe(0);
  return history;
}

test("a walk that shows less than half of the sessions of the last one misses the others", () => {
  expect(historyAfter(1_000).dropped(499, null)).toBe(501);
  expect(historyAfter(1_000).dropped(500, null)).toBe(0);
});

test("it is trusted if another source states about as few sessions, and not if it states more", () => {
  expect(historyAfter(1_000).dropped(300, 600)).toBe(0);
  expect(historyAfter(1_000).dropped(300, 601)).toBe(700);
  expect(historyAfter(1_000).dropped(0, 0)).toBe(0);
});

test("it is trusted after ten suspect walks in a row", () => {
  const history = historyAfter(1_000);
  for (let walk = 0; walk < 10; walk++) expect(history.dropped(10, 1_000)).toBe(990);
  expect(history.dropped(10, 1_000)).toBe(0);
  expect(history.dropped(10, 1_000)).toBe(0);
});

test("a walk in between that shows the sessions again ends the doubt", () => {
  const history = historyAfter(1_000);
  for (let walk = 0; walk < 30; walk++)
    expect(history.dropped(walk % 10 === 9 ? 1_000 : 0, null)).toBe(walk % 10 === 9 ? 0 : 1_000);
});

test("a walk of a list of fewer than 20 sessions is always trusted", () => {
  expect(historyAfter(19).dropped(0, 19)).toBe(0);
  expect(historyAfter(20).dropped(0, 20)).toBe(20);
});

test("after a restart the first walk is compared with the last one of the previous process", async () => {
  let isDropped = false;
  const wrapTransport = changingBodies((body, { path }) => {
    if (!isDropped || !path.startsWith("/v1/sessions?")) return null;
    const page = JSON.parse(body);
    const data = page.data.slice(0, 10);
    return JSON.stringify({ ...page, data, pagination: { ...page.pagination, total: data.length } });
  });
  const settings = { schedules: { ...everyMinuteSettings.schedules, details: null, stats: null, hourly: null } };
  const config = remediationConfig([]);
  const network = await startQuietNetwork({ config, settings, wrapTransport, scenario: { sessions: 200 } });
  expect(network.daemon.snapshots.last!.sessions!.complete).toBe(true);
  isDropped = true;
  await network.advance(3 * MINUTE_MS);
  await network.restart();
  await network.advance(3 * MINUTE_MS);
  expect(network.daemon.snapshots.last!.sessions!.complete).toBe(false);
});
