import { beforeEach, describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { createOutageModel, type OutageModel, type ShownNode } from "./outage-model.ts";

const NODES = ["a", "b", "c", "d"];
/** Two of the four nodes are an incident if they were shown healthy, otherwise three. */
const LIMITS = { nodes: 3, share: 0.5, withinMs: 5 * MINUTE_MS };

const COOLDOWN_MS = 20 * MINUTE_MS;

let model: OutageModel;
let now: number;
let treated: ReadonlySet<string>;
let lastSeen: Map<string, number>;
let nodesInRegion: number;

beforeEach(() => {
  [now, treated, lastSeen, nodesInRegion] = [0, new Set(), new Map(), NODES.length];
  model = createOutageModel({
    limits: () => LIMITS,
    cooldownMs: () => COOLDOWN_MS,
    nodesIn: () => nodesInRegion,
    maxAgeMs: () => 3 * MINUTE_MS,
    isTreated: (node) => treated.has(node),
  });
});

/** Shows all nodes a minute later, those in `unhealthy` as unhealthy since they were last seen. */
function show(unhealthy: string): void {
  now += MINUTE_MS;
  const shown = NODES.map((id): ShownNode => {
    const isUnhealthy = unhealthy.includes(id);
    if (!isUnhealthy) lastSeen.set(id, now);
    return { id, domain: "r", isUnhealthy, lastSeenMs: lastSeen.get(id) ?? 0 };
  });
  model.observe(shown, now);
}

const held = (): string => NODES.filter((node) => model.incidentOf(node, now) !== null).join("");

describe("nodes that were shown healthy", () => {
  beforeEach(() => show(""));

  test("are an incident if enough of them fail together", () => {
    show("a");
    expect(held()).toBe("");
    show("ab");
    expect(held()).toBe("ab");
    show("abc");
    expect(held()).toBe("abc");
  });

  test("are not an incident if they fail one by one", () => {
    show("a");
    for (let minutes = 0; minutes < 4; minutes++) show("a");
    show("ab");
    expect(held()).toBe("");
  });

  test("do not count if they failed before for a reason of their own", () => {
    show("a");
    for (let minutes = 0; minutes < 10; minutes++) show("");
    show("ab");
    expect(held()).toBe("");
  });

  test("count again once they were shown healthy for longer than any clear_for", () => {
    show("a");
    for (let minutes = 0; minutes < 22; minutes++) show("");
    show("ab");
    expect(held()).toBe("ab");
  });

  test("do not count while they have an open episode", () => {
    treated = new Set("a");
    show("ab");
    expect(held()).toBe("");
  });
});

describe("nodes that were not shown healthy before", () => {
  test("are an incident only if there are as many as both `nodes` and `percent` require", () => {
    show("ab");
    expect(held()).toBe("");
    show("abc");
    expect(held()).toBe("abc");
  });

  test("are an incident if they are all nodes of their region", () => {
    nodesInRegion = 2;
    show("ab");
    expect(held()).toBe("ab");
  });

  test("join an incident of their region", () => {
    show("");
    show("ab");
    for (let minutes = 0; minutes < 10; minutes++) show("ab");
    model.forgetHealth();
    show("abc");
    expect(held()).toBe("abc");
  });
});

describe("an incident", () => {
  beforeEach(() => {
    show("");
    show("abc");
  });

  test("is not known to the next process if the journal was not written after it", () => {
    model.startProcess();
    expect(held()).toBe("");
  });

  test("is known to the next process if the journal was written after it", () => {
    now += 3 * MINUTE_MS;
    model.recordCommit(now);
    model.startProcess();
    expect(held()).toBe("abc");
  });

  test("cools down once fewer than half of the nodes there are down, and is over after that", () => {
    const end = (down: string) => model.endIncidents((node) => down.includes(node), now);
    end("ab");
    now += COOLDOWN_MS;
    end("a");
    now += COOLDOWN_MS - MINUTE_MS;
    end("a");
    expect(held()).toBe("abc");
    now += MINUTE_MS;
    end("a");
    expect(held()).toBe("");
  });

  test("is active again if enough nodes are down again during the cooldown", () => {
    const end = (down: string) => model.endIncidents((node) => down.includes(node), now);
    end("a");
    now += COOLDOWN_MS - MINUTE_MS;
    end("ab");
    now += COOLDOWN_MS;
    end("ab");
    expect(held()).toBe("abc");
  });

  test("ends by itself, at the latest six hours after its last node failed", () => {
    now += 5 * HOUR_MS;
    expect(held()).toBe("abc");
    now += HOUR_MS;
    expect(held()).toBe("");
  });
});
