import { decodeNodeRecord, decodePage, decodeSessionRecord } from "../src/api-client/decoding/records.ts";
import { Inventory } from "../src/inventory/inventory.ts";
import { SessionTotals } from "../src/inventory/sessions/session-totals.ts";
import { defaultScenario, SIMULATION_KEY } from "../src/simulator/default-scenarios.ts";
import { createService, handleRequest } from "../src/simulator/http/service.ts";
import { median } from "./bench-process.ts";

/** Times to process a page of 1,000 records completely, and only to parse its JSON. */
export interface ParsingResult {
  readonly list: string;
  readonly parseMs: number;
  readonly processMs: number;
  readonly ratio: number;
}

/** The target for the ratio. */
export const PARSING_RATIO_MAX = 2.2;

const START_MS = Date.UTC(2026, 0, 1);
const ROUNDS = 301;
const WARM_UP_ROUNDS = 60;

/** Measures pages of the simulator in alternating rounds. Returns medians. */
export function benchParsing(): ParsingResult[] {
  const service = createService({ ...defaultScenario, nodes: 1_000, sessions: 1_300 }, START_MS);
  const page = (list: string): Uint8Array => {
    const headers = { authorization: `Bearer ${SIMULATION_KEY}` };
    const reply = handleRequest(
      service,
      { method: "GET", path: `/v1/${list}?page=1&limit=1000`, headers },
      START_MS + 1_000,
    );
    return Buffer.from(reply.body);
  };
  const inventory = new Inventory("ratio");
  const sessions = new SessionTotals(false, {
    isKnownNode: (id) => inventory.has(id),
    isFleetKnown: () => inventory.isKnown(),
    onFolded: () => {},
  });
  const ignore = () => {};
  const nodesBytes = page("nodes");
  const sessionsBytes = page("sessions");
  return [
    measure("nodes", nodesBytes, (record) => {
      const node = decodeNodeRecord(record, ignore);
      if (node !== null) inventory.recordListed(node, 0);
    }),
    measure("sessions", sessionsBytes, (record) => {
      const session = decodeSessionRecord(record, ignore);
      if (session !== null) sessions.add(session);
    }),
  ];
}

const utf8 = new TextDecoder();

function measure(list: string, bytes: Uint8Array, record: (record: unknown) => void): ParsingResult {
  const parsing: number[] = [];
  const processing: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    parsing.push(timed(() => void JSON.parse(utf8.decode(bytes))));
    processing.push(
      timed(() => {
        const page = decodePage(JSON.parse(utf8.decode(bytes)));
        if (!page.ok || page.value.records.length !== 1_000)
          throw new Error("the simulator did not return a page of 1,000 records");
        page.value.records.forEach(record);
      }),
    );
  }
  const [parseMs, processMs] = [parsing, processing].map((times) => median(times.slice(WARM_UP_ROUNDS))) as [
    number,
    number,
  ];
  return { list, parseMs, processMs, ratio: processMs / parseMs };
}

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
