import {
  actionCall,
  listNodesCall,
  readHourlyCall,
  readNodeCall,
  readStatsCall,
} from "../../../src/api-client/endpoints.ts";
import type { Random } from "../../../src/base/random.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { ok } from "../../../src/base/result.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createTestClient, createTestRateLimiter, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { bytesOf, jsonText, mutated, pick, randomBytes } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";
import { actionReply, hours, node, pageOf, statistics } from "./record-seeds.ts";

/** An answer of the service or of a proxy in front of it. */
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Input {
  readonly call: keyof typeof calls;
  /** Answers to the attempts of the calls, used in turn. */
  readonly answers: readonly Answer[];
}

const calls = {
  page: { call: listNodesCall({ page: 1, limit: 100 }), seed: pageOf([node]) },
  node: { call: readNodeCall("node_1"), seed: node },
  statistics: { call: readStatsCall, seed: statistics },
  hours: { call: readHourlyCall, seed: hours },
  quarantine: {
    call: actionCall("node_1", { kind: "quarantine", reason: "x", durationMinutes: 60 }),
    seed: actionReply,
  },
  reboot: { call: actionCall("node_1", { kind: "reboot", force: true }), seed: actionReply },
} as const;

const statuses = [200, 200, 200, 204, 299, 300, 304, 400, 401, 403, 404, 418, 429, 429, 500, 502, 503, 599, 999];
const counts = [
  "0",
  "1",
  "5",
  "99",
  "100",
  "200",
  "999999999999999",
  "1e3",
  "-1",
  "",
  " 7 ",
  "x",
  "1.5",
  "99999999999999999",
];
const dates = [
  "Sun, 01 Mar 2026 00:00:00 GMT",
  "Sun, 01 Mar 2026 00:00:59 GMT",
  "Thu, 01 Jan 1970 00:00:00 GMT",
  "Fri, 31 Dec 9999 23:59:59 GMT",
  "Sunday, 01-Mar-26 00:00:00 GMT",
  "Sun, x GMT",
  "-1",
];
const resets = ["1772323260", "0", "1", "99999999999", "999999999999999", "-5", "x"];

function headersOf(random: Random): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const maybe = (name: string, values: readonly string[]) => {
    if (random() < 0.6) headers[name] = pick(random, values);
  };
  maybe("x-ratelimit-limit", counts);
  maybe("x-ratelimit-remaining", counts);
  maybe("x-ratelimit-reset", resets);
  maybe("retry-after", [...counts, ...dates]);
  maybe("date", dates);
  maybe("content-type", ["application/json", "text/html", "", randomBytes(random, 20)]);
  maybe("content-encoding", ["gzip", "br", "identity", "x"]);
  maybe("location", ["https://elsewhere.example.net/", "//", randomBytes(random, 200)]);
  return headers;
}

/** The longest time of a call, including permits, attempts and backoff. */
const WAIT_MS_MAX = 1_800_000;
const CALLS = 2;

/** Answers of the service, processed by the API client: permits, retries and headers. */
export const createTarget = (): FuzzTarget<Input> => ({
  generate(random) {
    const call = pick(random, Object.keys(calls) as (keyof typeof calls)[]);
    const answers = Array.from({ length: 3 }, () => ({
      status: pick(random, statuses),
      headers: headersOf(random),
      body: random() < 0.1 ? randomBytes(random, 100) : jsonText(random, mutated(random, calls[call].seed)),
    }));
    return { call, answers };
  },
  async run({ call: name, answers }) {
    const clock = createVirtualClock(START_MS);
    let sent = 0;
    const transport: Transport = {
      async request() {
        const { status, headers, body } = answers[sent++ % answers.length]!;
        await clock.sleep(20);
        return ok({ status, headers, body: bytesOf(body) });
      },
      close: () => Promise.resolve(),
    };
    const client = clientOver(transport, clock);
    const signal = new AbortController().signal;
    const { call } = calls[name];
    for (let number = 0; number < CALLS; number++) {
      const sentBefore = sent;
      const running =
        "body" in call ? client.post(call, signal, (send) => send(signal)) : client.get(call, "walk", signal);
      let isOver = false;
      void running.finally(() => {
        isOver = true;
      });
      await clock.advance(WAIT_MS_MAX);
      assert(isOver, "the call did not end within half an hour");
      const result = await running;
      const message =
        "kind" in result ? ("message" in result ? result.message : "") : result.ok ? "" : result.error.message;
      assert(message.length <= 1_000, `the message has ${message.length} characters`);
      if ("body" in call) assert(sent - sentBefore <= 1, `a POST was sent ${sent - sentBefore} times`);
    }
  },
});

function clientOver(transport: Transport, clock: ReturnType<typeof createVirtualClock>) {
  const random = seededRandom(1);
  const calls = { since: () => 0, async add() {} };
  return createTestClient({ transport, rateLimiter: createTestRateLimiter({ clock, random, calls }), clock, random });
}
