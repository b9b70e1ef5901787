import {
  decodeActionReply,
  decodeNodeDetail,
  decodeNodeRecord,
  decodePage,
  decodeSessionRecord,
} from "../../../src/api-client/decoding/records.ts";
import { decodeHourly, decodeStatistics } from "../../../src/api-client/decoding/statistics.ts";
import { readJson } from "../../../src/api-client/json-body.ts";
import type { Random } from "../../../src/base/random.ts";
import { bytesOf, jsonText, mutated, pick, randomBytes } from "../mutation.ts";
import { assert, type FuzzTarget } from "../target.ts";
import { actionReply, hours, node, pageOf, session, statistics } from "./record-seeds.ts";

interface Input {
  readonly reader: keyof typeof seeds;
  readonly body: string;
}

const { cpu_usage, memory_usage, disk_usage, created_at, updated_at, ...listed } = node;

const seeds = {
  nodes: pageOf([listed, { ...listed, id: "node_2", status: "offline", last_seen: null }]),
  sessions: pageOf([session, { ...session, id: "sess_2", customer_id: "", node_id: null }]),
  detail: node,
  statistics,
  hours,
  reply: actionReply,
} as const;

/** Details are logged. */
const DETAIL_CHARACTERS_MAX = 2_000;

/** Bodies of the management service, read by the decoders of pages and records. */
export const createTarget = (): FuzzTarget<Input> => ({
  generate(random: Random) {
    const reader = pick(random, Object.keys(seeds) as (keyof typeof seeds)[]);
    const body = random() < 0.02 ? randomBytes(random, 200) : jsonText(random, mutated(random, seeds[reader]));
    return { reader, body };
  },
  run({ reader, body }) {
    const json = readJson({ status: 200, headers: {}, body: bytesOf(body) });
    if (!json.ok) return;
    read(reader, json.value);
  },
});

function read(reader: Input["reader"], json: unknown): void {
  const onProblem = ({ detail }: { readonly detail: string }) =>
    assert(detail.length <= DETAIL_CHARACTERS_MAX, `a detail has ${detail.length} characters`);
  switch (reader) {
    case "nodes":
    case "sessions": {
      const page = decodePage(json);
      if (!page.ok) return;
      assert(Number.isSafeInteger(page.value.total) && page.value.total >= 0, "the total is not a count");
      for (const record of page.value.records) {
        const decoded =
          reader === "nodes" ? decodeNodeRecord(record, onProblem) : decodeSessionRecord(record, onProblem);
        if (decoded !== null) expectPlain(decoded);
      }
      return;
    }
    case "detail": {
      const decoded = decodeNodeDetail(json, onProblem);
      if (decoded !== null) expectPlain(decoded);
      return;
    }
    case "statistics": {
      const decoded = decodeStatistics(json, onProblem);
      if (decoded.ok) JSON.stringify(decoded.value);
      return;
    }
    case "hours": {
      const decoded = decodeHourly(json, onProblem);
      if (decoded.ok) for (const hour of decoded.value) expectPlain(hour);
      return;
    }
    case "reply":
      expectPlain(decodeActionReply(json));
      return;
    default:
      reader satisfies never;
  }
}

/** Fails unless every field is null, a boolean, a finite number or a well-formed string. */
function expectPlain(record: object): void {
  for (const [field, value] of Object.entries(record)) {
    const isPlain =
      value === null ||
      typeof value === "boolean" ||
      (typeof value === "number" && Number.isFinite(value)) ||
      (typeof value === "string" && value.isWellFormed());
    assert(isPlain, `${field} is ${String(typeof value)} ${JSON.stringify(value)}`);
  }
}
