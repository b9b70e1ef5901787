import { expect, test } from "vitest";
import { familyNames } from "../../src/metrics/families/network-families.ts";
import { metricsReference } from "../../src/metrics/reference.ts";
import { FAILURE_MEANINGS, FAILURE_REASONS, REJECT_MEANINGS, REJECT_REASONS } from "../../src/metrics/label-values.ts";
import { WARDEN_FAMILIES, type WardenFamily } from "../../src/metrics/families/daemon-families.ts";

const text = metricsReference();

test("every family is in the reference, once", () => {
  const rows = text.match(/(?<=^\| `)prox[^`]+/gm);
  expect(rows).toEqual([...familyNames(), ...Object.keys(WARDEN_FAMILIES)]);
});

test("every value of a closed label is explained", () => {
  for (const reason of [...FAILURE_REASONS, ...REJECT_REASONS]) expect(text).toContain(`| \`${reason}\` | `);
  const closed = Object.values<WardenFamily>(WARDEN_FAMILIES).flatMap(({ labels }) => Object.values(labels));
  for (const value of closed.flatMap((values) => values ?? [])) expect(text).toContain(`\`${value}\``);
  for (const meaning of Object.values({ ...FAILURE_MEANINGS, ...REJECT_MEANINGS })) expect(meaning).not.toBe("");
});

test("every family in an example exists", () => {
  const queried = [...text.matchAll(/```promql\n([^`]*)```/g)].flatMap(([, query]) => query?.match(/prox\w+/g) ?? []);
  const known = [...familyNames(), ...Object.keys(WARDEN_FAMILIES)];
  expect(queried.filter((name) => !known.includes(name.replace(/_bucket$/, "")))).toEqual([]);
  expect(queried.length).toBeGreaterThan(5);
});
