import fc from "fast-check";
import { expect, test } from "vitest";
import { SORT_COLUMNS } from "../../../../src/web/ui/page/fleet/node-order.ts";
import { formatFragment, onlyFilter, parseFragment } from "../../../../src/web/ui/page/view-state.ts";

test("a fragment names the open node, the filter and the order", () => {
  const fragment = "#node/node_7?status=offline&remediation=held&q=DE&view=table&sort=-status&page=2&activity=actions";
  expect(parseFragment(fragment)).toEqual({
    node: "node_7",
    status: "offline",
    remediation: "held",
    search: "DE",
    view: "table",
    tableOrder: { column: "status", isDescending: true },
    attentionOrder: null,
    page: 2,
    activity: "actions",
  });
  expect(parseFragment("#?view=poster&sort=color&page=-3&activity=noise")).toEqual(parseFragment(""));
});

test("a fragment without filter changes only the node, and one that names a section changes nothing", () => {
  const current = parseFragment("#node/node_7?status=offline&q=DE");
  expect(parseFragment("#node/node_8", current)).toEqual({ ...current, node: "node_8" });
  expect(parseFragment("", current)).toEqual({ ...current, node: null });
  expect(parseFragment("#charts-card", current)).toEqual(current);
  expect(parseFragment("#?", current)).toEqual(parseFragment(""));
  expect(parseFragment("#node/100%", current).node).toBe("100%");
});

const orders = fc.option(fc.record({ column: fc.constantFrom(...SORT_COLUMNS), isDescending: fc.boolean() }));
const texts = fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter((text) => text.isWellFormed());

test("every state is read as it was written", () => {
  fc.assert(
    fc.property(
      fc.record({
        node: fc.option(texts),
        status: fc.option(texts),
        remediation: fc.option(texts),
        search: fc.oneof(fc.constant(""), texts),
        view: fc.constantFrom("grid" as const, "table" as const),
        tableOrder: orders,
        attentionOrder: orders,
        page: fc.integer({ min: 1, max: 1_000_000 }),
        activity: fc.constantFrom("all" as const, "actions" as const, "decisions" as const),
      }),
      (state) => {
        expect(parseFragment(formatFragment(state))).toEqual(state);
      },
    ),
  );
});

test("another filter replaces the whole filter and starts at the first page", () => {
  const shown = { ...parseFragment("#?view=table"), status: "offline", remediation: "held", search: "iad", page: 3 };
  expect({ ...shown, ...onlyFilter({ remediation: "canary" }) }).toEqual({
    ...parseFragment("#?view=table"),
    remediation: "canary",
  });
});
