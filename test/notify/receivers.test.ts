import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { HOUR_MS } from "../../src/base/duration.ts";
import type { Notification } from "../../src/model/remediation/notification.ts";
import { createAlertmanager } from "../../src/notify/alertmanager.ts";
import { createLogReceiver, createWebhook } from "../../src/notify/receivers.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { neverAnswers, startHttpServer } from "../api-client/transport/http-server.ts";
import { createRecordingLog, fixedKey, START_MS } from "../harness/daemon/virtual-daemon.ts";

const episode: Notification = {
  kind: "episode",
  key: "episode/ep-12",
  severity: "warning",
  summary: "node_7 is unhealthy",
  policy: "reboot-offline",
  node: "node_7",
  episode: "ep-12",
  region: "eu-west",
  startsAt: START_MS,
  endsAt: null,
};
const storm: Notification = {
  ...episode,
  kind: "storm",
  key: "storm",
  policy: null,
  node: null,
  episode: null,
  region: null,
};
const over: Notification = { ...episode, endsAt: START_MS + 90_000 };

type Parts = { url: string; clock?: ReturnType<typeof createVirtualClock>; runbook?: string };
const webhookTo = ({ url, clock = createVirtualClock(START_MS) }: Parts) => {
  const receiver = createWebhook({ name: "oncall", url: fixedKey(url), clock, agent: "proxywarden/test" });
  onTestFinished(() => receiver.close());
  return receiver;
};
const alertmanagerTo = ({ url, clock = createVirtualClock(START_MS), runbook }: Parts) => {
  const access = { url };
  const receiver = createAlertmanager({ name: "alerts", access, clock, agent: "proxywarden/test", runbook });
  onTestFinished(() => receiver.close());
  return receiver;
};
const receivers = { webhook: webhookTo, alertmanager: alertmanagerTo };

describe("a webhook", () => {
  test("gets the documented payload at exactly its URL", async () => {
    const { url, requests: seen } = await startHttpServer(() => ({ status: 204 }));
    const receiver = webhookTo({ url: `${url}/hooks/T0/?token=abc` });
    expect(await receiver.send([episode, over], neverAnswers)).toEqual({ ok: true });
    expect(seen[0]).toMatchObject({ method: "POST", url: "/hooks/T0/?token=abc" });
    expect(seen[0]!.headers["content-type"]).toBe("application/json");
    const fields = {
      kind: "episode",
      key: "episode/ep-12",
      severity: "warning",
      summary: "node_7 is unhealthy",
      policy: "reboot-offline",
      node_id: "node_7",
      episode: "ep-12",
      region: "eu-west",
      starts_at: "2026-03-01T00:00:00.000Z",
    };
    expect(JSON.parse(seen[0]!.body)).toEqual({
      version: "1",
      status: "firing",
      notices: [
        { status: "firing", ...fields, ends_at: null },
        { status: "resolved", ...fields, ends_at: "2026-03-01T00:01:30.000Z" },
      ],
    });
  });

  test("gets the status resolved if no notification fires, and null for fields that do not apply", async () => {
    const { url, requests: seen } = await startHttpServer(() => ({}));
    await webhookTo({ url }).send([over], neverAnswers);
    await webhookTo({ url }).send([storm], neverAnswers);
    expect(JSON.parse(seen[0]!.body)).toMatchObject({ status: "resolved" });
    expect(JSON.parse(seen[1]!.body).notices).toMatchObject([{ policy: null, node_id: null, region: null }]);
  });

  test("keeps its URL out of errors even if the response contains it", async () => {
    const secret = "/hooks/T0/B0/do-not-tell";
    const { url } = await startHttpServer(({ url }) => ({ status: 404, body: `${url} was not found` }));
    for (const base of [url, "http://127.0.0.1:1", "http:/\\bad host"]) {
      const result = await webhookTo({ url: base + secret }).send([episode], neverAnswers);
      expect(result.ok).toBe(false);
      expect(JSON.stringify(result)).not.toContain("do-not-tell");
    }
  });
});

describe("an Alertmanager", () => {
  const alertOf = async (notification: Notification, now = START_MS + 30_000) => {
    const { url, requests: seen } = await startHttpServer(() => ({}));
    const receiver = alertmanagerTo({ url: `${url}/am`, clock: createVirtualClock(now) });
    expect(await receiver.send([notification], neverAnswers)).toEqual({ ok: true });
    expect(seen[0]).toMatchObject({ method: "POST", url: "/am/api/v2/alerts" });
    return JSON.parse(seen[0]!.body)[0];
  };

  test("gets an alert with labels that expires in five minutes unless it is repeated", async () => {
    expect(await alertOf(episode)).toEqual({
      labels: {
        alertname: "ProxywardenEpisode",
        severity: "warning",
        key: "episode/ep-12",
        policy: "reboot-offline",
        node_id: "node_7",
        region: "eu-west",
        episode: "ep-12",
      },
      annotations: { summary: "node_7 is unhealthy" },
      startsAt: "2026-03-01T00:00:00.000Z",
      endsAt: "2026-03-01T00:05:30.000Z",
    });
    expect(alertmanagerTo({ url: "http://127.0.0.1:1" }).repeatMs).toBe(60_000);
  });

  test("gets the resolved alert with the same labels", async () => {
    const [began, ended] = [await alertOf(episode), await alertOf(over, START_MS + 120_000)];
    expect(ended.labels).toEqual(began.labels);
    expect(ended.endsAt).toBe("2026-03-01T00:01:30.000Z");
  });

  test("gets a single event as an alert of one hour from when it is sent", async () => {
    const step = await alertOf({ ...episode, kind: "step" }, START_MS + 600_000);
    expect(step).toMatchObject({ labels: { alertname: "ProxywardenNotifyStep" }, endsAt: "2026-03-01T01:10:00.000Z" });
    const repeated = await alertOf({ ...episode, kind: "step", endsAt: START_MS + HOUR_MS }, START_MS + 900_000);
    expect(repeated).toMatchObject({ endsAt: "2026-03-01T01:00:00.000Z" });
  });

  test("gets times by the wall clock if the journal's clock follows a service whose clock is wrong", async () => {
    const step = { ...episode, kind: "step" } as const;
    const behind = await alertOf({ ...step, startsAt: START_MS - 3 * HOUR_MS }, START_MS);
    expect(behind).toMatchObject({ startsAt: "2026-02-28T21:00:00.000Z", endsAt: "2026-03-01T01:00:00.000Z" });
    const ahead = { ...over, startsAt: START_MS + 3 * HOUR_MS, endsAt: START_MS + 4 * HOUR_MS };
    expect(await alertOf(ahead, START_MS)).toMatchObject({
      startsAt: "2026-03-01T00:00:00.000Z",
      endsAt: "2026-03-01T00:00:00.000Z",
    });
  });

  test("gets no labels for fields that do not apply, and no alert that ends before it starts", async () => {
    expect((await alertOf({ ...storm, region: "" })).labels).toEqual({
      alertname: "ProxywardenStorm",
      severity: "warning",
      key: "storm",
    });
    const early = await alertOf({ ...over, endsAt: START_MS - 1_000 });
    expect(early.startsAt).toBe(early.endsAt);
  });

  test("gets the address of the runbook's section, if the runbook has one", async () => {
    const { url, requests: seen } = await startHttpServer(() => ({}));
    await alertmanagerTo({ url, runbook: "https://wiki.internal/runbook" }).send([episode], neverAnswers);
    const [alert] = JSON.parse(seen[0]!.body) as { annotations: { runbook_url: string } }[];
    expect(alert!.annotations.runbook_url).toBe("https://wiki.internal/runbook#alerts-that-the-daemon-sends");
    expect(readFileSync("docs/runbook.md", "utf8")).toContain("\n## Alerts that the daemon sends\n");
  });

  test("is quoted in the error if it refuses alerts", async () => {
    const { url } = await startHttpServer(() => ({ status: 400, body: '"start time must be before end time"' }));
    const refusal = await alertmanagerTo({ url }).send([episode], neverAnswers);
    expect(refusal).toMatchObject({ isFinal: true, error: expect.stringContaining("start time must be before") });
  });
});

describe.each(Object.entries(receivers))("whatever the receiver: %s", (_, receiverTo) => {
  test.each([
    [400, true],
    [404, true],
    [413, true],
    [401, false],
    [403, false],
    [408, false],
    [429, false],
    [302, false],
    [500, false],
    [503, false],
  ])("%i is final: %s", async (status, isFinal) => {
    const { url, requests: seen } = await startHttpServer(() => ({ status }));
    expect(await receiverTo({ url }).send([episode], neverAnswers)).toMatchObject({
      ok: false,
      isFinal,
      error: expect.stringContaining(`it answered ${status}`),
    });
    expect(seen).toHaveLength(1);
  });

  test("fails retryably after a time-out or without a connection", async () => {
    const { url, waitForRequests: came } = await startHttpServer(() => null);
    const clock = createVirtualClock(START_MS);
    const sending = receiverTo({ url, clock }).send([episode], neverAnswers);
    await came(1);
    await clock.advance(10_000);
    expect(await sending).toEqual({ ok: false, error: "no complete response within 10 s", isFinal: false });
    expect(await receiverTo({ url: "http://127.0.0.1:1" }).send([episode], neverAnswers)).toMatchObject({
      isFinal: false,
    });
  });
});

test("a receiver with log writes each notification to the log, and what is critical as an error", async () => {
  const log = createRecordingLog();
  const receiver = createLogReceiver("oncall", log);
  const critical: Notification = { ...storm, severity: "critical" };
  expect(await receiver.send([episode, critical, over], new AbortController().signal)).toEqual({ ok: true });
  expect(log.lines.map(({ level, message, fields }) => [level, message, fields.key, fields.ends_at])).toEqual([
    ["warn", "notification", "episode/ep-12", undefined],
    ["error", "notification", "storm", undefined],
    ["info", "notification", "episode/ep-12", new Date(START_MS + 90_000).toISOString()],
  ]);
});
