import { describe, expect, test } from "vitest";
import { decodeActionReply } from "../../src/api-client/decoding/records.ts";
import { actionCall } from "../../src/api-client/endpoints.ts";
import type { PostResult } from "../../src/api-client/post-result.ts";
import type { FaultKind } from "../../src/config/schema/scenario.ts";
import type { Secret, Transport, TransportRequest } from "../../src/model/ports.ts";
import type { ActionRequest } from "../../src/model/remediation/episode.ts";
import { replyCounts } from "../../src/simulator/http/service.ts";
import { fixedKey } from "../harness/daemon/virtual-daemon.ts";
import { actualNodes } from "../harness/simulator/actual-state.ts";
import { type ClientSetup, createClientSetup, SESSIONS_KEY } from "./client-fixture.ts";

const quarantine: ActionRequest = { kind: "quarantine", reason: "disk full", durationMinutes: 90 };
const reboot: ActionRequest = { kind: "reboot", force: true };
const disconnect: ActionRequest = { kind: "disconnect" };

type Send = (signal: AbortSignal) => Promise<PostResult>;

const sendNow = async (send: Send, { signal }: AbortController): Promise<PostResult> => send(signal);

function open(setting: ClientSetup = {}) {
  const sent: TransportRequest[] = [];
  const setup = createClientSetup({
    ...setting,
    wrap: (transport) => {
      const wrapped = setting.wrap?.(transport) ?? transport;
      return {
        ...wrapped,
        request(request, signal) {
          sent.push(request);
          return wrapped.request(request, signal);
        },
      };
    },
  });
  const nodes = [...actualNodes(setup.service)];
  const node = nodes.find(({ status }) => status === "online")!.id;
  const post = async (request: ActionRequest, { id = node, whenPermitted = sendNow, aborts = false } = {}) => {
    const abort = new AbortController();
    const posting = setup.client.post(actionCall(id, request), abort.signal, (send) => whenPermitted(send, abort));
    if (aborts) {
      await setup.clock.advance(5_000);
      abort.abort();
    }
    await setup.clock.advance(400_000);
    return posting;
  };
  const posts = () =>
    replyCounts(setup.service)
      .filter(({ endpoint }) => endpoint.startsWith("POST"))
      .reduce((sum, { count }) => sum + count, 0);
  const statusOf = (id: string) => [...actualNodes(setup.service)].find((node) => node.id === id)!.status;
  return { ...setup, sent, node, post, posts, statusOf };
}

const replyOf = (result: PostResult) => (result.kind === "done" ? result.reply : result);

describe("an action that the service accepts", () => {
  test("a quarantine sends reason and minutes, and decodes the response", async () => {
    const { post, sent, node, statusOf } = open();
    const result = await post(quarantine);
    expect(replyOf(result)).toEqual({
      success: true,
      message: `Node ${node} has been quarantined`,
      durationMinutes: 90,
    });
    expect(sent[0]).toMatchObject({
      method: "POST",
      path: `/v1/nodes/${node}/quarantine`,
      headers: { "content-type": "application/json" },
      body: '{"reason":"disk full","duration_minutes":90}',
    });
    expect(statusOf(node)).toBe("quarantined");
  });

  test("a reboot sends force, and a disconnect has no body and no content type", async () => {
    const { post, sent } = open();
    await post(disconnect);
    await post(reboot);
    expect(sent.map(({ path, body }) => [path.split("/").at(-1), body])).toEqual([
      ["disconnect", undefined],
      ["reboot", '{"force":true}'],
    ]);
    expect(sent[0]!.headers).not.toHaveProperty("content-type");
  });

  test.each([
    ["success", true],
    ["empty_object", null],
    ["no_content", null],
  ] as const)("reboot and disconnect are done where the service answers with %s", async (actionReply, success) => {
    const { post } = open({ service: { actionReply } });
    for (const request of [disconnect, reboot]) {
      const result = await post(request);
      expect(result.kind).toBe("done");
      expect(replyOf(result)).toMatchObject({ success, durationMinutes: null });
    }
  });

  test("a response that is not JSON is done, with a message that quotes it", async () => {
    const { post } = open({ fault: { kind: "html" } });
    const result = await post(reboot);
    expect(result.kind).toBe("done");
    expect(replyOf(result)).toEqual({
      success: null,
      message: expect.stringMatching(/answered 200: expected JSON, got text\/html.* beginning with "<!doctype/i),
      durationMinutes: null,
    });
  });
});

const answering =
  (status: number, body: string, headers: Record<string, string> = {}) =>
  (transport: Transport): Transport => ({
    ...transport,
    request: async () => ({ ok: true, value: { status, headers, body: Buffer.from(body) } }),
  });

describe("an action that the service rejects", () => {
  test.each(["code", "nested", "text", "empty"] as const)(
    "404 and 409 are refusals, whatever shape errors have: %s",
    async (errorBody) => {
      const { post } = open({ service: { errorBody } });
      expect(await post(reboot, { id: "node_that_is_not" })).toMatchObject({ kind: "refused", status: 404 });
      expect(await post(reboot)).toMatchObject({ kind: "done" });
      const { post: again } = open({ service: { errorBody }, wrap: answering(409, "rebooting already") });
      expect(await again(reboot)).toMatchObject({ kind: "refused", status: 409 });
    },
  );

  test("a reboot of a rebooting node is refused with the reason", async () => {
    const { client, clock, node } = open();
    const { signal } = new AbortController();
    const act = () => client.post(actionCall(node, reboot), signal, (send) => send(signal));
    const both = [act(), act()];
    await clock.advance(20_000);
    const [first, second] = await Promise.all(both);
    expect(first!.kind).toBe("done");
    expect(second).toMatchObject({ kind: "refused", status: 409, message: expect.stringContaining("node_rebooting") });
  });

  test("an invalid reason is refused", async () => {
    const { post } = open();
    expect(await post({ ...quarantine, reason: "" })).toMatchObject({ kind: "refused", status: 400 });
  });

  test("2xx with success false is refused, with the message of the service", async () => {
    const { post } = open({ wrap: answering(200, '{"success":false,"message":"node is locked"}') });
    expect(await post(reboot)).toEqual({
      kind: "refused",
      status: 200,
      message: expect.stringContaining("success false: node is locked"),
    });
  });

  test("a key without nodes:write is a credentials error that names the missing scope", async () => {
    const { post, posts } = open({ secret: fixedKey(SESSIONS_KEY) });
    expect(await post(reboot)).toMatchObject({ kind: "credentials", status: 403 });
    expect(await post(reboot)).toHaveProperty("message", expect.stringContaining("lack the scope nodes:write"));
    expect(posts()).toBe(2);
  });

  test("a 401 reads the key file again, and does not send the POST again", async () => {
    let refreshed = 0;
    const secret: Secret = {
      value: () => "old-key",
      refresh: () => ({ ok: false, error: `key.txt is empty, ${++refreshed}` }),
    };
    const { post, posts } = open({ secret });
    expect(await post(reboot)).toEqual({
      kind: "credentials",
      status: 401,
      message: expect.stringMatching(/not accepted; key.txt is empty, 1$/),
    });
    expect(posts()).toBe(1);
  });

  test("a 429 returns the wait, and the POST is not sent again", async () => {
    const { post, posts } = open({ fault: { kind: "status", status: 429, retryAfter: "7" } });
    expect(await post(reboot)).toMatchObject({ kind: "rate_limited", retryAfterMs: 7_000 });
    const { post: unsaid } = open({ fault: { kind: "status", status: 429 } });
    expect(await unsaid(reboot)).toMatchObject({ kind: "rate_limited", retryAfterMs: null });
    expect(posts()).toBe(1);
  });
});

const doubts: readonly [FaultKind, RegExp][] = [
  [{ kind: "status", status: 503 }, /answered 503/],
  [{ kind: "hang" }, /no complete response within 10 s/],
  [{ kind: "reset" }, /reset/],
  [{ kind: "truncate" }, /reset/],
  [{ kind: "lost_reply" }, /reset/],
  [{ kind: "slow_drip", bytesPerSecond: 1 }, /no complete response/],
  [{ kind: "huge_body", bytes: 20 * 2 ** 20 }, /larger than/],
  [{ kind: "redirect", location: "http://127.0.0.1:1/" }, /answered 302, to "http.*may have forwarded the request/],
];

describe("a response that leaves the action in doubt", () => {
  test.each(doubts)("%o: in doubt, and sent once", async (fault, message) => {
    const { post, posts } = open({ fault });
    expect(await post(reboot)).toEqual({ kind: "in_doubt", message: expect.stringMatching(message) });
    expect(posts()).toBe(1);
  });

  test("canceled while in flight: in doubt", async () => {
    const { post, posts } = open({ fault: { kind: "hang" } });
    expect(await post(reboot, { aborts: true })).toEqual({
      kind: "in_doubt",
      message: "canceled while it was in flight",
    });
    expect(posts()).toBe(1);
  });
});

describe("an action that was not sent", () => {
  const failing =
    (failure: { kind: "unreachable" | "aborted"; unsent?: true }) =>
    (transport: Transport): Transport => ({
      ...transport,
      request: async () => ({ ok: false, error: { ...failure, message: "no way there" } }),
    });

  test("no connection: not sent", async () => {
    expect(await open({ wrap: failing({ kind: "unreachable" }) }).post(reboot)).toMatchObject({ kind: "not_sent" });
    expect(await open({ wrap: failing({ kind: "aborted", unsent: true }) }).post(reboot)).toEqual({ kind: "canceled" });
  });

  test("no permit within five minutes: not sent, and the message says when the next call is allowed", async () => {
    const { service, post, posts } = open({ fault: { kind: "status", status: 429, retryAfter: "900" } });
    await post(reboot);
    service.setFaults([]);
    const whenPermitted = () => Promise.reject(new Error("there is no permit"));
    const result = await post(reboot, { whenPermitted });
    expect(result).toEqual({ kind: "not_sent", message: expect.stringMatching(/allows no call for another \d+m/) });
    expect(posts()).toBe(1);
  });

  test.each([
    ["an error", () => Promise.reject(new Error("the disk is full"))],
    ["a decision", async () => ({ kind: "not_sent", message: "the disk is full" }) as const],
  ])("%s before the POST prevents it, and the permit is returned unused", async (_, whenPermitted) => {
    const { post, posts, rateLimiter, store, calls } = open();
    expect(await post(reboot, { whenPermitted })).toEqual({ kind: "not_sent", message: "the disk is full" });
    expect([posts(), rateLimiter.ledger.monthUsed, rateLimiter.ledger.inFlight]).toEqual([0, 0, 0]);
    expect(calls).toEqual([]);
    await post(reboot);
    expect([rateLimiter.ledger.monthUsed, store.calls.since("2026-03-01")]).toEqual([1, 1]);
  });

  test("an error after the POST: in doubt", async () => {
    const { post, posts, rateLimiter } = open();
    const whenPermitted = async (send: Send, { signal }: AbortController) => {
      await send(signal);
      throw new Error("the disk is full");
    };
    expect(await post(reboot, { whenPermitted })).toEqual({ kind: "in_doubt", message: "the disk is full" });
    expect([posts(), rateLimiter.ledger.monthUsed, rateLimiter.ledger.inFlight]).toEqual([1, 1, 0]);
  });

  test("canceled right before it is sent, or before it has a permit", async () => {
    const { client, node, post, posts, rateLimiter } = open();
    const whenPermitted = (send: Send, abort: AbortController) => {
      abort.abort();
      return send(abort.signal);
    };
    expect(await post(reboot, { whenPermitted })).toEqual({ kind: "canceled" });
    const early = AbortSignal.abort();
    expect(await client.post(actionCall(node, reboot), early, (send) => send(early))).toEqual({ kind: "canceled" });
    expect([posts(), rateLimiter.ledger.monthUsed, rateLimiter.ledger.inFlight]).toEqual([0, 0, 0]);
  });
});

test("a POST waits for its permit, and is sent before `send` returns", async () => {
  const order: string[] = [];
  const { clock, post, rateLimiter } = open({
    wrap: (transport) => ({
      ...transport,
      request(request, signal) {
        order.push(`sent ${clock.monotonic()}`);
        return transport.request(request, signal);
      },
    }),
  });
  const whenPermitted = async (send: Send, { signal }: AbortController) => {
    await clock.sleep(1_000);
    order.push(`sending ${clock.monotonic()}, under way ${rateLimiter.ledger.inFlight}`);
    queueMicrotask(() => order.push("later"));
    return send(signal);
  };
  expect((await post(reboot, { whenPermitted })).kind).toBe("done");
  const at = order[0]!.split(/[ ,]/)[1];
  expect(order).toEqual([`sending ${at}, under way 1`, `sent ${at}`, "later"]);
});

test("an empty or invalid response to an action has only null fields", () => {
  const nothing = { success: null, message: null, durationMinutes: null };
  for (const json of [null, 7, "done", [], {}]) expect(decodeActionReply(json)).toEqual(nothing);
  const nonsense = { success: "yes", message: 7, duration_minutes: "90" };
  expect(decodeActionReply(nonsense)).toEqual(nothing);
});
