import fc from "fast-check";
import { expect, test } from "vitest";
import { byName } from "../../src/base/by-name.ts";
import { FairQueue, TRAFFIC_CLASSES, type TrafficClass, type TrafficShares } from "../../src/scheduling/fair-queue.ts";

const weights: fc.Arbitrary<Readonly<Record<TrafficClass, number>>> = fc
  .array(fc.integer({ min: 1, max: 50 }), { minLength: 4, maxLength: 4 })
  .map(([nodes, sessions, details, stats]) => ({ nodes, sessions, details, stats }) as Record<TrafficClass, number>);

const sharesOf = (given: Readonly<Record<TrafficClass, number>>, savedMax = 0): TrafficShares =>
  byName(TRAFFIC_CLASSES, (flow) => ({ weight: given[flow], savedMax }));

test("classes that always wait are served in the ratio of their weights, to within one call each", () => {
  fc.assert(
    fc.property(
      weights,
      fc.subarray([...TRAFFIC_CLASSES], { minLength: 1 }),
      fc.integer({ min: 1, max: 400 }),
      (given, flows, calls) => {
        const share = new FairQueue();
        share.setShares(sharesOf(given));
        const served: Record<TrafficClass, number> = { nodes: 0, sessions: 0, details: 0, stats: 0 };
        for (let call = 0; call < calls; call++) {
          const [flow] = share.order(flows);
          share.recordServed(flow!);
          served[flow!]++;
        }
        for (const one of flows) {
          for (const other of flows) {
            const lead = served[one] / given[one] - served[other] / given[other];
            expect(lead).toBeLessThanOrEqual(1 / given[one] + 1 / given[other] + 1e-9);
          }
        }
      },
    ),
  );
});

test("a class without saved calls gets only its share after it was idle", () => {
  const share = new FairQueue();
  for (let call = 0; call < 100; call++) share.recordServed("nodes");
  share.activate("details");
  const order: TrafficClass[] = [];
  for (let call = 0; call < 20; call++) {
    const [flow] = share.order(["nodes", "details"]);
    share.recordServed(flow!);
    order.push(flow!);
  }
  expect(order.filter((flow) => flow === "details").length).toBeLessThanOrEqual(11);
  expect(order.slice(0, 2)).toContain("details");
});

test("an idle class gets its saved calls immediately, and its share from then on", () => {
  const share = new FairQueue();
  share.setShares(sharesOf({ nodes: 1, sessions: 1, details: 1, stats: 1 }, 5));
  for (let call = 0; call < 100; call++) share.recordServed("details");
  share.activate("nodes");
  const order: TrafficClass[] = [];
  for (let call = 0; call < 25; call++) {
    const [flow] = share.order(["nodes", "details"]);
    share.recordServed(flow!);
    order.push(flow!);
  }
  expect(order.slice(0, 5)).toEqual(["nodes", "nodes", "nodes", "nodes", "nodes"]);
  expect(order.slice(5).filter((flow) => flow === "nodes").length).toBeLessThanOrEqual(11);
});

test("runs within their share are served immediately", () => {
  const share = new FairQueue();
  const pages = 5;
  const callsPerRun = 100;
  share.setShares({
    ...sharesOf({ nodes: pages, sessions: 1, details: callsPerRun - pages, stats: 1 }),
    nodes: { weight: pages, savedMax: pages },
  });
  share.activate("details");
  for (let run = 0; run < 10; run++) {
    share.activate("nodes");
    let waiting = pages;
    for (let call = 0; call < callsPerRun; call++) {
      const [flow] = share.order(waiting > 0 ? ["nodes", "details"] : ["details"]);
      expect(flow).toBe(call < pages ? "nodes" : "details");
      share.recordServed(flow!);
      if (flow === "nodes") waiting--;
    }
  }
});
