import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { FaultKind } from "../../../src/model/scenario.ts";
import { actualNodes } from "../../../src/simulator/inspection.ts";
import type { MetricsPage } from "../metrics-page.ts";
import { failures, NODES, nodesOn, startDaemonOnNetwork, type TestDaemon } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Waits for a page that shows what `holds` asks for. Every look is a scrape: one that fails on the way ends the test. */
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
  untilPageShows("the whole network is seen", daemon, (seen) => {
    const read = ["nodes", "details", "sessions", "stats", "hourly"].every(
      (collector) => seen.sum("proxywarden_collect_last_success_timestamp_seconds", { collector }) !== null,
    );
    // The daemon's own metrics are ahead of the page of the network, by a rendering.
    const shown = ["proxynet_session_sent_bytes_total", "proxynet_stats_active_sessions"];
    return read && shown.every((name) => seen.sum(name) !== null) && nodesOn(seen) === NODES;
  });

/** When each of the collectors that run all the time last succeeded. */
const successes = (seen: MetricsPage) =>
  ["nodes", "details", "sessions", "stats"].map(
    (collector) => seen.sum("proxywarden_collect_last_success_timestamp_seconds", { collector }) ?? 0,
  );

const untilAllCollectorsSucceedAgain = async (daemon: TestDaemon) => {
  const before = successes(await daemon.scrape());
  await untilPageShows("everything is collected again", daemon, (seen) =>
    successes(seen).every((at, index) => at > before[index]!),
  );
  return untilPageShows(
    "all data are back",
    daemon,
    (seen) => nodesOn(seen) === NODES && lastSeenCount(seen) === NODES,
  );
};

const lastSeenCount = (seen: MetricsPage) => seen.select("proxynet_node_last_seen_timestamp_seconds").length;

describe("pain 3: through each fault the daemon lives, serves and counts, and the data are back afterwards", () => {
  interface Case {
    readonly fault: FaultKind;
    readonly reason: string;
    /** What the log says of it. */
    readonly says: RegExp;
    /** Where the fault would cost the machine too much if every request met it. */
    readonly match?: string;
    readonly timeout?: string;
  }
  const cases: readonly Case[] = [
    { fault: { kind: "status", status: 503 }, reason: "server_error", says: /answered 503: .*upstream_error/ },
    {
      fault: { kind: "status", status: 429, retryAfter: "5" },
      reason: "rate_limited",
      says: /answered 429: wait 5 s/,
    },
    { fault: { kind: "hang" }, reason: "timeout", says: /no whole answer within 5 s/ },
    { fault: { kind: "reset" }, reason: "reset", says: /ECONNRESET|UND_ERR_SOCKET/ },
    { fault: { kind: "truncate" }, reason: "reset", says: /terminated|UND_ERR|ECONNRESET/ },
    { fault: { kind: "bad_json" }, reason: "not_json", says: /the JSON is cut off after \d+ characters; it ends with/ },
    {
      fault: { kind: "html" },
      reason: "not_json",
      says: /expected JSON, got text\/html.* beginning with "<!doctype html>/,
    },
    { fault: { kind: "wrong_shape" }, reason: "wrong_shape", says: /this is not a page: data: / },
    { fault: { kind: "slow_drip", bytesPerSecond: 20 }, reason: "timeout", says: /no whole answer within 5 s/ },
    {
      fault: { kind: "huge_body", bytes: 20 * 2 ** 20 },
      reason: "too_large",
      says: /larger than 16777216 bytes/,
      match: "/v1/nodes?",
      timeout: "1m",
    },
    {
      fault: { kind: "redirect", location: "http://127.0.0.1:1/" },
      reason: "redirected",
      says: /answered 302, to .*redirects are not followed; set service.base_url/,
    },
    { fault: { kind: "lost_reply" }, reason: "reset", says: /ECONNRESET|UND_ERR_SOCKET/ },
  ];

  test.each(cases)("$fault.kind: counted as $reason", async ({ fault, reason, says, match, timeout = "5s" }) => {
    const { network, daemon } = await startDaemonOnNetwork({ config: { service: { timeout } } });
    await untilWholeNetworkSeen(daemon);
    network.setFault(fault, match);
    const struck = match === undefined ? ["nodes", "details", "sessions", "stats"] : ["nodes"];
    const during = await untilPageShows(`failures are counted as ${reason}`, daemon, (seen) =>
      struck.every((collector) => failures(seen, collector, reason) > 0),
    );
    expect(failures(during, "nodes", "internal")).toBe(0);
    const output = daemon.log.lines.find(({ fields }) => fields.collector === "nodes" && fields.reason === reason);
    expect(output).toMatchObject({
      level: "warn",
      message: "collector failed",
      fields: { problem: expect.stringMatching(says) },
    });
    network.setFault(null);
    const after = await untilAllCollectorsSucceedAgain(daemon);
    expect(failures(after, "nodes", reason)).toBeGreaterThan(0);
  });

  test("bad_records: what can't be used is counted by what is wrong, the rest is shown", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    await untilWholeNetworkSeen(daemon);
    network.setFault({ kind: "bad_records", share: 0.6 });
    const rejected = (seen: MetricsPage, reason: string) =>
      seen.sum("proxywarden_records_rejected_total", { collector: "nodes", reason }) ?? 0;
    const oddNames = (seen: MetricsPage) => seen.select("proxynet_node_info", { name: 'we"ird\n\\na' }).length;
    const reasons = ["wrong_type", "missing_id", "unknown_status", "bad_time"];
    const during = await untilPageShows(
      "odd records are counted, and what of them can be used is shown",
      daemon,
      (seen) => {
        const unknown = seen.sum("proxynet_nodes", { status: "unknown" }) ?? 0;
        return reasons.every((reason) => rejected(seen, reason) > 0) && unknown > 0 && oddNames(seen) > 0;
      },
    );
    expect(nodesOn(during)).toBe(NODES);
    const output = await waitUntil("the walk has ended, and the log says what was found", () =>
      daemon.log.lines.find(({ fields }) => fields.collector === "nodes" && "detail" in fields),
    );
    expect(output).toMatchObject({ level: "warn", message: "records do not match the spec" });
    network.setFault(null);
    await untilAllCollectorsSucceedAgain(daemon);
    await untilPageShows("every state and every name is known again", daemon, (seen) => {
      return seen.sum("proxynet_nodes", { status: "unknown" }) === 0 && oddNames(seen) === 0;
    });
  });

  test.each<FaultKind>([{ kind: "vanished", share: 0.5 }])(
    "$kind: the series of vanished nodes go, all of them, and come back with the nodes",
    async (fault) => {
      const { network, daemon } = await startDaemonOnNetwork();
      await untilWholeNetworkSeen(daemon);
      network.setFault(fault, "/v1/nodes");
      const during = await untilPageShows("fewer nodes are shown", daemon, (seen) => (nodesOn(seen) ?? 0) < NODES);
      const shown = new Set(during.select("proxynet_node_info").map(({ labels }) => labels.node_id));
      expect(shown.size).toBe(nodesOn(during) ?? 0);
      const named = during.samples.filter(
        ({ name, labels }) => labels.node_id !== undefined && name.startsWith("proxynet_node_") && !isOfSessions(name),
      );
      expect(named.filter(({ labels }) => !shown.has(labels.node_id))).toEqual([]);
      network.setFault(null);
      await untilAllCollectorsSucceedAgain(daemon);
    },
  );

  test("stale_last_seen: the timestamps stand still, which is what the service says, and move again", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    const newest = (seen: MetricsPage) =>
      Math.max(...seen.select("proxynet_node_last_seen_timestamp_seconds").map(({ value }) => value));
    network.setFault({ kind: "stale_last_seen" });
    const first = await untilWholeNetworkSeen(daemon);
    const [walkedAt] = successes(first);
    const later = await untilPageShows("more walks succeed", daemon, (seen) => successes(seen)[0]! > walkedAt! + 30);
    expect(newest(later)).toBe(newest(first));
    network.setFault(null);
    await untilPageShows("nodes are seen anew", daemon, (seen) => newest(seen) > newest(first));
  });

  test("region_dark: its nodes, and no others, are offline until it is back", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    await untilWholeNetworkSeen(daemon);
    const region = "eu-central";
    const count = (seen: MetricsPage, status: string, of = region) =>
      seen.sum("proxynet_nodes", { status, region: of }) ?? 0;
    const before = await daemon.scrape();
    expect(count(before, "online")).toBeGreaterThan(0);
    network.setFault({ kind: "region_dark", region });
    const dark = await untilPageShows("none of its nodes is online", daemon, (seen) => count(seen, "online") === 0);
    const truth = [...actualNodes(network.service)].filter((node) => node.region === region);
    expect(count(dark, "offline")).toBe(truth.filter(({ status }) => status === "offline").length);
    expect(count(dark, "online", "us-east")).toBe(count(before, "online", "us-east"));
    network.setFault(null);
    await untilPageShows("its nodes are back", daemon, (seen) => count(seen, "online") > 0);
  });

  test("clock_skew: the service's clock is an hour ahead, and only the skew says so", async () => {
    const { network, daemon } = await startDaemonOnNetwork();
    await untilWholeNetworkSeen(daemon);
    const skew = (seen: MetricsPage) => seen.sum("proxywarden_service_clock_skew_seconds") ?? Number.NaN;
    network.setFault({ kind: "clock_skew", skewMs: 60 * MINUTE_MS });
    await untilPageShows("the skew shows", daemon, (seen) => Math.abs(skew(seen) - 3_600) < 60);
    const during = await untilAllCollectorsSucceedAgain(daemon);
    expect(during.sum("proxywarden_ratelimit_exceeded_total")).toBe(0);
    network.setFault(null);
    await untilPageShows("the skew is gone", daemon, (seen) => Math.abs(skew(seen)) < 60);
  });
});

test("pain 2: after a 429 the category is left alone for as long as Retry-After says, and the others go on", async () => {
  const { network, daemon } = await startDaemonOnNetwork();
  await untilWholeNetworkSeen(daemon);
  network.setFault({ kind: "status", status: 429, retryAfter: "600" }, "/v1/nodes");
  const category = "node_management";
  await untilPageShows("a node endpoint refuses", daemon, (seen) => {
    return (seen.sum("proxywarden_ratelimit_exceeded_total", { category }) ?? 0) > 0;
  });
  network.setFault(null);
  const calls = (seen: MetricsPage, endpoint: string) => seen.sum("proxywarden_api_requests_total", { endpoint }) ?? 0;
  const refused = await untilPageShows("calls under way have ended", daemon, () => network.service.inFlight === 0);
  const later = await untilPageShows(
    "statistics go on",
    daemon,
    (seen) => calls(seen, "stats") >= calls(refused, "stats") + 12,
  );
  for (const endpoint of ["nodes_list", "node"]) expect(calls(later, endpoint)).toBe(calls(refused, endpoint));
  expect(later.sum("proxywarden_ratelimit_exceeded_total", { category: "session_monitoring" })).toBe(0);
});

test("pain 4: of what grew old unseen no gauge stays on the page, every counter does, and the age of the last success tells", async () => {
  const { network, daemon } = await startDaemonOnNetwork({ speed: 90 });
  const before = await untilWholeNetworkSeen(daemon);
  network.setFault({ kind: "reset" });
  // The hours are collected once an hour, and have three of them to grow old.
  const blind = await untilPageShows("no gauge of the network is left", daemon, (seen) =>
    seen.samples.every(
      ({ name }) => !name.startsWith("proxynet_") || isCounter(name) || name.startsWith("proxynet_hourly_"),
    ),
  );
  for (const name of ["proxynet_session_sent_bytes_total", "proxynet_session_duration_seconds_count"]) {
    expect(blind.select(name).length).toBeGreaterThanOrEqual(before.select(name).length);
    expect(blind.sum(name)).toBeGreaterThanOrEqual(before.sum(name)!);
  }
  const [walkedAt] = successes(blind);
  expect(network.clock.now() / SECOND_MS - walkedAt!).toBeGreaterThan(15);
  expect(blind.sum("proxywarden_collect_complete", { collector: "nodes" })).toBe(0);
  network.setFault(null);
  const after = await untilAllCollectorsSucceedAgain(daemon);
  expect(after.sum("proxynet_session_sent_bytes_total")).toBeGreaterThanOrEqual(
    blind.sum("proxynet_session_sent_bytes_total")!,
  );
});

/** Families that are read from the sessions: a node may have some though the list does not show it. */
const isOfSessions = (name: string) => name === "proxynet_node_sessions";

const isCounter = (name: string) => /_(?:total|bucket|sum|count)$/.test(name);
