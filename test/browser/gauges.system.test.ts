import { expect, test } from "vitest";
import { LargeFleet } from "./harness/large-fleet.ts";
import { openDaemon, useBrowser } from "./harness/page-visit.ts";
import { COLLECTOR_OFF } from "./harness/quiet-daemon.ts";

useBrowser();

test("a standby does not claim that data is not collected, or that it can send calls", async () => {
  const base = new LargeFleet(1).webDeps();
  const category = {
    configured: { requests: 100, burst: 200, window_seconds: 60 },
    stated: null,
    remaining_at_least: null,
    consecutive_refusals: 0,
    next_poll: { in_seconds: null, held_by: null },
  };
  const { page } = await openDaemon({
    status: () => ({ ...(base.status() as object), leader: { is_this: false, name: "alpha", url: null } }),
    budget: () => ({ ...(base.budget() as object), categories: { node_management: category } }),
  });
  await page.locator("#fresh").getByText("this daemon does not poll").waitFor();
  await page.locator("#budget").getByText("100 a minute, burst 200 · this daemon does not poll").waitFor();
});

test("a standby does not claim that it will read nodes and sessions, nor a leader that it will read what is off", async () => {
  const status = {
    ...(new LargeFleet(1).webDeps().status() as object),
    leader: { is_this: false, name: "alpha", url: null },
    collectors: { nodes: COLLECTOR_OFF, sessions: COLLECTOR_OFF },
  };
  const { page } = await openDaemon({ fleet: () => null, status: () => status });
  await page.locator('[data-k="tile Online"]').getByText("this daemon does not poll").waitFor();
  await page.locator('[data-k="tile Active sessions"]').getByText("this daemon does not poll").waitFor();
  expect(await page.locator("#attention-none").textContent()).toBe("No nodes are known.");
  await page.getByRole("img", { name: "Active sessions: active: not known", exact: true }).waitFor();
  status.leader.is_this = true;
  await page.locator('[data-k="tile Online"]').getByText("no nodes known yet").waitFor();
  await page.locator('[data-k="tile Active sessions"]').getByText("not collected").waitFor();
});

test("the budget shows no negative number of calls, and a limit on concurrent requests alone", async () => {
  const budget = new LargeFleet(1).webDeps().budget() as { readonly month: object };
  const { page } = await openDaemon({
    budget: () => ({
      ...budget,
      plan: { requests_per_minute: null, concurrent_requests: 10 },
      month: { ...budget.month, calls: 1_200, calls_limit: 1_000 },
    }),
  });
  await page.locator("#budget").getByText("Plan: 10 requests at once.").waitFor();
  expect(await page.locator("#budget .gauge-value").textContent()).toBe("0 left");
});

test("the time until the month ends passes although no call is made", async () => {
  const status = { ...(new LargeFleet(1).webDeps().status() as object), now: "2026-11-21T00:00:00.000Z" };
  const { page } = await openDaemon({ status: () => status });
  await page.locator("#budget").getByText("ends in 10d").waitFor();
  status.now = "2026-11-22T00:00:00.000Z";
  await page.locator("#budget").getByText("ends in 9d").waitFor();
});

test("until the budget is read the page does not claim that there is no monthly limit", async () => {
  const { page } = await openDaemon({
    budget() {
      throw new Error("this budget can't be read");
    },
  });
  await page.locator("#connection").getByText("incomplete").waitFor();
  expect(await page.locator('[data-k="tile Calls this month"] small').textContent()).toBe("not read yet");
});

test("limits, ages and charts say what their numbers mean", async () => {
  const category = {
    configured: { requests: 100, burst: 200, window_seconds: 60 },
    stated: null,
    remaining_at_least: 179,
    consecutive_refusals: 0,
    next_poll: { in_seconds: 0, held_by: null },
  };
  const waiting = { ...category, next_poll: { in_seconds: null, held_by: "concurrency" } };
  const planned = { interval_seconds: 900, fresh_seconds: 2_700, slowdown: 2.3, bound_by: "month" };
  const details = { planned, age_seconds: { median: 20, max: 34 }, nodes_read: 12, failure: null };
  const base = new LargeFleet(1).webDeps();
  const at = Array.from({ length: 60 }, (_, index) => 1_800_000_000 + 10 * index);
  const flat = (value: number) => at.map(() => value);
  const { page } = await openDaemon({
    status: () => ({
      ...(base.status() as object),
      nodes: { total: 1_000 },
      collectors: { details, nodes: COLLECTOR_OFF },
    }),
    budget: () => ({ ...(base.budget() as object), categories: { node_management: category, waiting } }),
    history: () => ({
      step_seconds: 10,
      at,
      series: {
        nodes: flat(1_000),
        online: flat(993),
        active_sessions: flat(4_321),
        month_calls: flat(1),
        node_management_left: flat(179),
        session_monitoring_left: flat(900),
      },
    }),
  });
  expect(await page.locator("#budget .gauge").first().textContent()).toContain("179 left100 a minute, burst 200");
  expect(await page.locator("#budget .gauge").nth(1).textContent()).toContain(
    "· next call delayed by the limit on concurrent requests",
  );
  const fresh = page.locator("#fresh .gauge").first();
  expect(await fresh.locator(".gauge-value").textContent()).toBe("34s");
  const note = "12 of 1,000 read · every 15m · slowed down 2.3x by the plan's calls per month · median age 20s";
  expect(await fresh.locator(".gauge-note").textContent()).toBe(note);
  const chart = page.locator("#charts figure").first();
  await chart.scrollIntoViewIfNeeded();
  const box = (await chart.locator(".u-over").boundingBox())!;
  await page.mouse.move(box.x + box.width - 5, box.y + 20);
  await chart.locator(".tip").getByText("· not online 7").waitFor();
  // No sample is near: the daemon is younger than the hour that the axis shows.
  await page.mouse.move(box.x + 5, box.y + 20);
  await chart.locator(".tip").waitFor({ state: "hidden" });
});
