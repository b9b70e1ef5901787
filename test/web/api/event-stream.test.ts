import { EventEmitter, once } from "node:events";
import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createEventLog } from "../../../src/web/api/event-log.ts";
import { EventBroadcaster, SUBSCRIBERS_MAX } from "../../../src/web/api/event-stream.ts";
import { createFleetGrid } from "../../../src/web/api/fleet-view.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { buildFleet, stepsOf, withStatus } from "../fleet-fixture.ts";
import { startServerWithFiles } from "../http/secured-server.ts";
import { fetchFrom, log, startTestServer, stoppedClock } from "../http/test-server.ts";
import { heldDecision, idleRemediation, verifiedAction } from "./remediation-view-fixture.ts";

/** Creates a broadcaster on virtual time. */
function startBroadcaster() {
  const clock = createVirtualClock(0);
  const eventLog = createEventLog();
  const now = { fleet: buildFleet([{ id: "a" }, { id: "b" }]), broken: false };
  const fleet = () => {
    if (now.broken) throw new Error("a defect");
    return now.fleet;
  };
  const broadcaster = new EventBroadcaster({
    eventLog,
    clock,
    epoch: "e1",
    log,
    fleetGrid: createFleetGrid({ fleet, marks: () => stepsOf(undefined) }),
  });
  onTestFinished(() => broadcaster.close());
  return { clock, eventLog, now, broadcaster };
}

/** A response that records what is sent. */
class RecordingResponse extends EventEmitter {
  text = "";
  readonly ends: string[] = [];
  writableLength = 0;
  destroyed = false;
  writeHead() {}
  write(text: string) {
    this.text += text;
  }
  end() {
    this.ends.push("end");
  }
  destroy() {
    this.ends.push("cut");
  }
  /** Returns the events since the last call. */
  events() {
    const blocks = this.text.split("\n\n").filter((block) => block.includes("event: "));
    this.text = "";
    return blocks.map((block) => {
      const [, event] = /^event: (.*)$/m.exec(block)!;
      const [, id = null] = /^id: (.*)$/m.exec(block) ?? [];
      return { event, id, data: JSON.parse(/^data: (.*)$/m.exec(block)![1]!) };
    });
  }
}

const subscribe = (broadcaster: EventBroadcaster, response: RecordingResponse, lastEventId: string | null = null) =>
  broadcaster.subscribe(response as unknown as ServerResponse, lastEventId);

const decisionChange = (node: string) => [{ kind: "decision", row: { ...heldDecision, node } }] as const;

test("a subscriber gets hello, then events within half a second", async () => {
  const { clock, eventLog, now, broadcaster } = startBroadcaster();
  eventLog.record(decisionChange("before"));
  const one = new RecordingResponse();
  expect(await subscribe(broadcaster, one)).toBe(true);
  expect(one.events()).toEqual([{ event: "hello", id: "e1-1", data: { revision: 1 } }]);
  eventLog.record([...decisionChange("a"), { kind: "action", row: verifiedAction }]);
  now.fleet = withStatus(now.fleet, { 1: "offline" });
  await clock.advance(500);
  expect(one.events()).toMatchObject([
    { event: "decision", id: "e1-2", data: { node: "a", verdict: "hold" } },
    { event: "action", id: "e1-3", data: { id: "act-2", outcome: "verified" } },
    { event: "fleet", id: null, data: { from: 1, revision: 2, cells: [[1, 1, 0]] } },
  ]);
  await clock.advance(5_000);
  expect(one.events()).toEqual([]);
});

test("a subscriber that reconnects gets the rows that it missed, or how many", async () => {
  const { clock, eventLog, broadcaster } = startBroadcaster();
  for (const node of ["a", "b", "c"]) eventLog.record(decisionChange(node));
  const back = new RecordingResponse();
  await subscribe(broadcaster, back, "e1-1");
  expect(back.events().map(({ event, id, data }) => [event, id, data.node])).toEqual([
    ["decision", "e1-2", "b"],
    ["decision", "e1-3", "c"],
    ["hello", "e1-3", undefined],
  ]);
  for (let count = 0; count < 300; count++) eventLog.record(decisionChange(`n${count}`));
  await clock.advance(500);
  const storm = back.events();
  expect(storm[0]).toEqual({ event: "missed", id: null, data: { rows: 100 } });
  expect(storm.slice(1).map(({ data }) => data.node)).toEqual(Array.from({ length: 200 }, (_, n) => `n${n + 100}`));
  for (const [id, missed] of [
    ["e1-3", 100],
    ["e0-300", null],
    ["e1-999", null],
    ["nonsense", null],
  ] as const) {
    const late = new RecordingResponse();
    await subscribe(broadcaster, late, id);
    expect(late.events()[0]).toEqual({ event: "missed", id: null, data: { rows: missed } });
  }
});

test("a heartbeat is sent every 15 s without events", async () => {
  const { clock, broadcaster } = startBroadcaster();
  const one = new RecordingResponse();
  await subscribe(broadcaster, one);
  one.text = "";
  await clock.advance(14_000);
  expect(one.text).toBe("");
  await clock.advance(2_000);
  // Scripts in a browser see events, but not comments.
  expect(one.events()).toEqual([{ event: "heartbeat", id: null, data: {} }]);
});

test("a subscriber with a megabyte of unread events is disconnected", async () => {
  const { clock, eventLog, broadcaster } = startBroadcaster();
  const [slow, quick] = [new RecordingResponse(), new RecordingResponse()];
  await subscribe(broadcaster, slow);
  await subscribe(broadcaster, quick);
  slow.writableLength = 1_048_577;
  eventLog.record(decisionChange("a"));
  await clock.advance(500);
  expect(slow.ends).toEqual(["cut"]);
  expect(quick.events().map(({ event }) => event)).toEqual(["hello", "decision"]);
});

test("nothing is published without subscribers, and an error is logged", async () => {
  const { clock, eventLog, now, broadcaster } = startBroadcaster();
  const one = new RecordingResponse();
  await subscribe(broadcaster, one);
  now.broken = true;
  await clock.advance(1_000);
  now.broken = false;
  eventLog.record(decisionChange("a"));
  await clock.advance(500);
  expect(one.events().map(({ event }) => event)).toEqual(["hello", "decision"]);
  one.emit("close");
  await clock.advance(500);
  expect(clock.sleeperCount()).toBe(0);
});

test("subscribers are limited, and closing ends them all", async () => {
  const { broadcaster } = startBroadcaster();
  const all = Array.from({ length: SUBSCRIBERS_MAX + 1 }, () => new RecordingResponse());
  const joined = await Promise.all(all.map((one) => subscribe(broadcaster, one)));
  expect(joined.filter((isIn) => !isIn)).toHaveLength(1);
  broadcaster.close();
  expect(all.map(({ ends }) => ends.join())).toEqual([...Array(SUBSCRIBERS_MAX).fill("end"), ""]);
  expect(await subscribe(broadcaster, new RecordingResponse())).toBe(false);
});

test("a connection that closes while the fleet is read is not subscribed", async () => {
  const { clock, eventLog, broadcaster } = startBroadcaster();
  const [gone, one] = [new RecordingResponse(), new RecordingResponse()];
  const joining = subscribe(broadcaster, gone);
  gone.destroyed = true;
  await joining;
  await subscribe(broadcaster, one);
  eventLog.record(decisionChange("a"));
  await clock.advance(500);
  expect(one.events().map(({ event }) => event)).toEqual(["hello", "decision"]);
  expect(gone.events()).toEqual([]);
});

test("a decision made while a subscriber joins is sent to it once", async () => {
  const { clock, eventLog, broadcaster } = startBroadcaster();
  const [first, second] = [new RecordingResponse(), new RecordingResponse()];
  await subscribe(broadcaster, first);
  const joining = subscribe(broadcaster, second, "e1-0");
  eventLog.record(decisionChange("a"));
  await joining;
  await clock.advance(1_000);
  expect(first.events().map(({ event, id }) => [event, id])).toEqual([
    ["hello", "e1-0"],
    ["decision", "e1-1"],
  ]);
  expect(second.events().map(({ event, id }) => [event, id])).toEqual([
    ["decision", "e1-1"],
    ["hello", "e1-1"],
  ]);
});

/** Opens an event stream and returns the response as soon as its headers arrived. */
async function open(url: string, path = "/api/v1/events", headers = {}): Promise<IncomingMessage> {
  const request = httpRequest(url + path, { agent: false, headers }).end();
  const [response] = await once(request, "response");
  onTestFinished(() => void request.destroy());
  return response;
}

test("over HTTP Last-Event-ID takes precedence over the query", async () => {
  const eventLog = createEventLog();
  for (const node of ["a", "b", "c"]) eventLog.record(decisionChange(node));
  const web = await startTestServer({ eventLog, epoch: "e1", remediation: () => idleRemediation });
  const response = await open(web.url, "/api/v1/events?last_event_id=e1-0", { "last-event-id": "e1-2" });
  expect(response.statusCode).toBe(200);
  expect(response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  expect(response.headers["cache-control"]).toBe("no-store");
  let text = "";
  response.setEncoding("utf8").on("data", (piece) => {
    text += piece;
  });
  await waitUntil("it was greeted", () => text.includes("event: hello"));
  expect([...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id)).toEqual(["e1-3", "e1-3"]);
  const ended = once(response, "end");
  await web.close(SHUTDOWN_BUDGET.webMs);
  await ended;
});

test("over HTTP one stream too many is answered 503 with Retry-After, and counted", async () => {
  const { web, metrics } = await startServerWithFiles({ "web.yml": "" });
  const streams = await Promise.all(Array.from({ length: SUBSCRIBERS_MAX }, () => open(web.url)));
  const refused = await fetchFrom(web, "/api/v1/events");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "30"]);
  expect(JSON.parse(refused.text)).toMatchObject({ error: "unavailable" });
  expect(metrics["proxywarden_web_refusals_total busy"]).toBe(1);
  expect((await fetchFrom(web, "/api/v1/events", { method: "HEAD" })).status).toBe(200);
  expect((await fetchFrom(web, "/api/v1/events?since=1")).status).toBe(400);
  streams[0]!.destroy();
  await waitUntil("there is room", async () => {
    const response = await open(web.url);
    const isIn = response.statusCode === 200;
    if (!isIn) response.resume();
    return isIn;
  });
});

test("the fleet document is compressed once for all requests", async () => {
  const web = await startTestServer(
    { fleet: () => buildFleet([{ id: "a" }, { id: "b", status: "offline" }]) },
    stoppedClock,
  );
  const plain = await fetchFrom(web, "/api/v1/fleet", { headers: { "accept-encoding": "identity" } });
  expect(JSON.parse(plain.text)).toMatchObject({ ids: ["a", "b"], status: "01" });
  const packed = await fetchFrom(web, "/api/v1/fleet", { headers: { "accept-encoding": "gzip" } });
  expect(packed.headers.get("content-encoding")).toBe("gzip");
  expect(JSON.parse(packed.text)).toMatchObject({ ids: ["a", "b"], status: "01" });
});
