import fc from "fast-check";
import { expect, test } from "vitest";
import { createFairShare, FLOWS, type Flow, type Weights } from "../../src/budget/fair-share.ts";

const weights: fc.Arbitrary<Weights> = fc
  .array(fc.integer({ min: 1, max: 50 }), { minLength: 4, maxLength: 4 })
  .map(([nodes, sessions, details, stats]) => ({ nodes, sessions, details, stats }) as Weights);

test("flows that always wait are served in the ratio of their weights, to within one call each", () => {
  fc.assert(
    fc.property(
      weights,
      fc.subarray([...FLOWS], { minLength: 1 }),
      fc.integer({ min: 1, max: 400 }),
      (given, flows, calls) => {
        const share = createFairShare();
        share.setWeights(given);
        const served: Record<Flow, number> = { nodes: 0, sessions: 0, details: 0, stats: 0 };
        for (let call = 0; call < calls; call++) {
          const [flow] = share.order(flows);
          share.serve(flow!);
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

test("a flow that was idle saves nothing up: it gets its share from now on, and no more", () => {
  const share = createFairShare();
  for (let call = 0; call < 100; call++) share.serve("nodes");
  share.begin("details");
  const order: Flow[] = [];
  for (let call = 0; call < 20; call++) {
    const [flow] = share.order(["nodes", "details"]);
    share.serve(flow!);
    order.push(flow!);
  }
  expect(order.filter((flow) => flow === "details").length).toBeLessThanOrEqual(11);
  expect(order.slice(0, 2)).toContain("details");
});
