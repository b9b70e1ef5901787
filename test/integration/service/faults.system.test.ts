import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { FaultKind } from "../../../src/config/schema/scenario.ts";
import { actualNodes } from "../../harness/simulator/actual-state.ts";
import type { MetricsPage } from "../metrics-page.ts";
import { failures, NODES, nodesOn, startDaemonOnNetwork, type TestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Scrapes until `holds` accepts the page. A failing scrape fails the test. */
const untilPageShows = (
  what: string,
  daemon: TestDaemon,
  holds: (page: MetricsPage) => boolean,
): Promise<MetricsPage> =>
  waitUntil(what, async () => {
    const seen = await daemon.scrape();
    return holds(seen) && seen;
  });

const untilWholeNetworkSeen = (daemon: TestDaemon) =>
  untilPageShows("the whole network is exported", daemon, (seen) => {
    const read = ["nodes", "details", "sessions", "stats", "hourly"].every(
      (collector) => seen.sum("proxywarden_collect_last_success_timestamp_seconds", { collector }) !== null,
    );
    // The daemon's own metrics are rendered live, those of the network with the next snapshot.
    const shown = ["proxynet_session_sent_bytes_total", "proxynet_stats_active_sessions"];
    return read && shown.every((name) => seen.sum(name) !== null) && nodesOn(seen) === NODES;
  });

/** Returns when each frequent collector last succeeded. */
const successes = (seen: MetricsPage) =>
  ["nodes", "details", "sessions", "stats"].map(
    (collector) => seen.sum("proxywarden_collect_last_success_timestamp_seconds", { collector }) ?? 0,
  );

const untilAllCollectorsSucceedAgain = async (daemon: TestDaemon) => {
  const before = successes(await daemon.scrape());
  await untilPageShows("every collector succeeds again", daemon, (seen) =>
    successes(seen).every((at, index) => at > before[index]!),
  );
  return untilPageShows("all data is back", daemon, (seen) => nodesOn(seen) === NODES && lastSeenCount(seen) === NODES);
};

const lastSeenCount = (seen: MetricsPage) => seen.select("proxynet_node_last_seen_timestamp_seconds").length;

describe("during a fault the daemon stays up, serves scrapes and counts failures, and recovers afterwards", () => {
  interface Case {
    readonly fault: FaultKind;
    readonly reason: string;
    /** The problem in the log. */
    readonly problem: RegExp;
    /** Limits expensive faults to some requests. */
    readonly match?: string;
  }
  /** A reason is logged once in a while, so it occurs once in each list. */
  const statusesAndBodies: readonly Case[] = [
    { fault: { kind: "status", status: 503 }, reason: "server_error", problem: /answered 503: .*upstream_error/ },
    {
      fault: { kind: "status", status: 429, retryAfter: "5" },
      reason: "rate_limited",
      problem: /answered 429: wait 5 s/,
    },
    { fault: { kind: "hang" }, reason: "timeout", problem: /no complete response within 20 s/ },
    { fault: { kind: "reset" }, reason: "reset", problem: /ECONNRESET|UND_ERR_SOCKET/ },
    {
      fault: { kind: "bad_json" },
      reason: "not_json",
      problem: /the JSON is cut off after \d+ characters; it ends with/,
    },
    { fault: { kind: "wrong_shape" }, reason: "wrong_shape", problem: /this is not a page: data: / },
    {
      fault: { kind: "redirect", location: "http://127.0.0.1:1/" },
      reason: "redirected",
      problem: /answered 302, to .*redirects are not followed; set service.base_url/,
    },
  ];
  const incomplete: readonly Case[] = [
    { fault: { kind: "truncate" }, reason: "reset", problem: /terminated|UND_ERR|ECONNRESET/ },
    {
      fault: { kind: "html" },
      reason: "not_json",
      problem: /expected JSON, got text\/html.* beginning with "<!doctype html>/,
    },
    {
      fault: { kind: "slow_drip", bytesPerSecond: 20 },
      reason: "timeout",
      problem: /no complete response within 20 s/,
    },
  ];
  const slow: readonly Case[] = [
    {
      fault: { kind: "huge_body", bytes: 20 * 2 ** 20 },
      reason: "too_large",
      problem: /larger than 16777216 bytes/,
      match: "/v1/nodes?",
    },
    { fault: { kind: "lost_reply" }, reason: "reset", problem: /ECONNRESET|UND_ERR_SOCKET/ },
  ];

  // The cases of a list share a daemon, because its start takes longer than a fault.
  test.each([
    { timeout: "20s", cases: statusesAndBodies },
    { timeout: "20s", cases: incomplete },
    { timeout: "1m", cases: slow },
  ])("each fault is counted by its reason: $cases.0.fault.kind and others", async ({ timeout, cases }) => {
    const { network, daemon } = await startDaemonOnNetwork({ config: { service: { timeout } } });
    await untilWholeNetworkSeen(daemon);
    for (const { fault, reason, problem, match } of cases) {
      network.setFault(fault, match);
      const failing = match === undefined ? ["nodes", "details", "sessions", "stats"] : ["nodes"];
      const during = await untilPageShows(`failures of ${fault.kind} are counted as ${reason}`, daemon, (seen) =>
        failing.every((collector) => failures(seen, collector, reason) > 0),
      );
      expect(failures(during, "nodes", "internal")).toBe(0);
      const output = daemon.log.lines.find(({ fields }) => fields.collector === "nodes" && fields.reason === reason);
      expect(output).toMatchObject({
        level: "warn",
        message: "collector failed",
        fields: { problem: expect.stringMatching(problem) },
      });
      network.setFault(null);
      const after = await untilAllCollectorsSucceedAgain(daemon);
      expect(failures(after, "nodes", reason)).toBeGreaterThan(0);
    }
  });

  test("bad_records: unusable fields are counted by problem, the others are exported", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    await untilWholeNetworkSeen(daemon);
    network.setFault({ kind: "bad_records", spoiled: 0.6 });
    const rejected = (seen: MetricsPage, reason: string) =>
      seen.sum("proxywarden_records_rejected_total", { collector: "nodes", reason }) ?? 0;
    const malformedNames = (seen: MetricsPage) => seen.select("proxynet_node_info", { name: 'we"ird\n\\na' }).length;
    const reasons = ["wrong_type", "missing_id", "unknown_status", "bad_time"];
    const during = await untilPageShows("bad records are counted and their usable fields exported", daemon, (seen) => {
      const unknown = seen.sum("proxynet_nodes", { status: "unknown" }) ?? 0;
      return reasons.every((reason) => rejected(seen, reason) > 0) && unknown > 0 && malformedNames(seen) > 0;
    });
    expect(nodesOn(during)).toBe(NODES);
    const output = await waitUntil("the walk has ended and the log names the rejected records", () =>
      daemon.log.lines.find(({ fields }) => fields.collector === "nodes" && "detail" in fields),
    );
    expect(output).toMatchObject({ level: "warn", message: "records do not match the API documentation" });
    network.setFault(null);
    await untilAllCollectorsSucceedAgain(daemon);
    await untilPageShows("every status and name is valid again", daemon, (seen) => {
      return seen.sum("proxynet_nodes", { status: "unknown" }) === 0 && malformedNames(seen) === 0;
    });
  });

  test.each<FaultKind>([{ kind: "vanished", missing: 0.5 }])(
    "$kind: all series of vanished nodes disappear, and return with the nodes",
    async (fault) => {
      const { network, daemon } = await startDaemonOnNetwork();
      await untilWholeNetworkSeen(daemon);
      network.setFault(fault, "/v1/nodes");
      // Gauges of the list become stale before lookups show that a node is gone, which ends those of its detail.
      await untilPageShows("only series of fewer nodes are exported", daemon, (seen) => {
        const shown = new Set(seen.select("proxynet_node_info").map(({ labels }) => labels.node_id));
        const named = seen.samples.filter(
          ({ name, labels }) =>
            labels.node_id !== undefined && name.startsWith("proxynet_node_") && !isOfSessions(name),
        );
        return (
          shown.size < NODES && shown.size === nodesOn(seen) && named.every(({ labels }) => shown.has(labels.node_id))
        );
      });
      network.setFault(null);
      await untilAllCollectorsSucceedAgain(daemon);
    },
  );

  test("stale_last_seen: last_seen is exported as the service reports it", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    const newest = (seen: MetricsPage) =>
      Math.max(...seen.select("proxynet_node_last_seen_timestamp_seconds").map(({ value }) => value));
    network.setFault({ kind: "stale_last_seen" });
    // The first walk may have begun before the fault.
    const [startedAt] = successes(await untilWholeNetworkSeen(daemon));
    const first = await untilPageShows("two walks succeed", daemon, (seen) => successes(seen)[0]! > startedAt! + 30);
    const [walkedAt] = successes(first);
    const later = await untilPageShows("more walks succeed", daemon, (seen) => successes(seen)[0]! > walkedAt! + 30);
    expect(newest(later)).toBe(newest(first));
    network.setFault(null);
    await untilPageShows("last_seen advances", daemon, (seen) => newest(seen) > newest(first));
  });

  test("region_dark: only the nodes of the region are offline, until it is back", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    await untilWholeNetworkSeen(daemon);
    const region = "eu-central";
    const count = (seen: MetricsPage, status: string, of = region) =>
      seen.sum("proxynet_nodes", { status, region: of }) ?? 0;
    const before = await daemon.scrape();
    expect(count(before, "online")).toBeGreaterThan(0);
    network.setFault({ kind: "region_dark", region });
    const dark = await untilPageShows("no node of the region is online", daemon, (seen) => count(seen, "online") === 0);
    const actual = [...actualNodes(network.service)].filter((node) => node.region === region);
    expect(count(dark, "offline")).toBe(actual.filter(({ status }) => status === "offline").length);
    expect(count(dark, "online", "us-east")).toBe(count(before, "online", "us-east"));
    network.setFault(null);
    await untilPageShows("the nodes are back online", daemon, (seen) => count(seen, "online") > 0);
  });

  test("clock_skew: a service clock that is an hour ahead affects only the skew metric", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    await untilWholeNetworkSeen(daemon);
    const skew = (seen: MetricsPage) => seen.sum("proxywarden_service_clock_skew_seconds") ?? Number.NaN;
    network.setFault({ kind: "clock_skew", skewMs: 60 * MINUTE_MS });
    await untilPageShows("the skew is exported", daemon, (seen) => Math.abs(skew(seen) - 3_600) < 60);
    const during = await untilAllCollectorsSucceedAgain(daemon);
    expect(during.sum("proxywarden_ratelimit_exceeded_total")).toBe(0);
    network.setFault(null);
    await untilPageShows("the skew is gone", daemon, (seen) => Math.abs(skew(seen)) < 60);
  });
});

test("after a 429 the category waits for Retry-After while the other continues", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await untilWholeNetworkSeen(daemon);
  network.setFault({ kind: "status", status: 429, retryAfter: "600" }, "/v1/nodes");
  const category = "node_management";
  await untilPageShows("a node call is answered 429", daemon, (seen) => {
    return (seen.sum("proxywarden_ratelimit_exceeded_total", { category }) ?? 0) > 0;
  });
  network.setFault(null);
  const calls = (seen: MetricsPage, endpoint: string) => seen.sum("proxywarden_api_requests_total", { endpoint }) ?? 0;
  const rejected = await untilPageShows("calls in flight have ended", daemon, () => network.service.inFlight === 0);
  const later = await untilPageShows(
    "statistics are still polled",
    daemon,
    (seen) => calls(seen, "stats") >= calls(rejected, "stats") + 12,
  );
  for (const endpoint of ["nodes_list", "node"]) expect(calls(later, endpoint)).toBe(calls(rejected, endpoint));
  expect(later.sum("proxywarden_ratelimit_exceeded_total", { category: "session_monitoring" })).toBe(0);
});

test("without new data gauges disappear, counters stay, and the last success shows the age", async () => {
  const { network, daemon } = await startDaemonOnNetwork({ speed: 90 });
  const before = await untilWholeNetworkSeen(daemon);
  network.setFault({ kind: "reset" });
  // Hourly statistics become stale only after three hours.
  const stale = await untilPageShows("all network gauges are gone", daemon, (seen) =>
    seen.samples.every(
      ({ name }) => !name.startsWith("proxynet_") || isCounter(name) || name.startsWith("proxynet_hourly_"),
    ),
  );
  for (const name of ["proxynet_session_sent_bytes_total", "proxynet_session_duration_seconds_count"]) {
    expect(stale.select(name).length).toBeGreaterThanOrEqual(before.select(name).length);
    expect(stale.sum(name)).toBeGreaterThanOrEqual(before.sum(name)!);
  }
  const [walkedAt] = successes(stale);
  expect(network.clock.now() / SECOND_MS - walkedAt!).toBeGreaterThan(15);
  expect(stale.sum("proxywarden_collect_complete", { collector: "nodes" })).toBe(0);
  network.setFault(null);
  const after = await untilAllCollectorsSucceedAgain(daemon);
  expect(after.sum("proxynet_session_sent_bytes_total")).toBeGreaterThanOrEqual(
    stale.sum("proxynet_session_sent_bytes_total")!,
  );
});

/** Families from the session list, which may name nodes that the node list lacks. */
const isOfSessions = (name: string) => name === "proxynet_node_sessions";

const isCounter = (name: string) => /_(?:total|bucket|sum|count)$/.test(name);
