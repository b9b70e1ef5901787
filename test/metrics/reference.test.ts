import { expect, test } from "vitest";
import { DAEMON_FAMILIES, type DaemonFamily } from "../../src/metrics/families/daemon-families.ts";
import { networkFamilyNames } from "../../src/metrics/families/network-families.ts";
import { FAILURE_MEANINGS, FAILURE_REASONS, REJECT_MEANINGS, REJECT_REASONS } from "../../src/metrics/label-values.ts";
import { metricsReference } from "../../src/metrics/reference.ts";

const text = metricsReference();

test("every family is in the reference, once", () => {
  const rows = text.match(/(?<=^\| `)prox[^`]+/gm);
  expect(rows).toEqual([...networkFamilyNames(), ...Object.keys(DAEMON_FAMILIES)]);
});

test("every value of a closed label is explained", () => {
  for (const reason of [...FAILURE_REASONS, ...REJECT_REASONS]) expect(text).toContain(`| \`${reason}\` | `);
  const closed = Object.values<DaemonFamily>(DAEMON_FAMILIES).flatMap(({ labels }) => Object.values(labels));
  for (const value of closed.flatMap((values) => values ?? [])) expect(text).toContain(`\`${value}\``);
  for (const meaning of Object.values({ ...FAILURE_MEANINGS, ...REJECT_MEANINGS })) expect(meaning).not.toBe("");
});

test("every family in an example exists", () => {
  const queried = [...text.matchAll(/```promql\n([^`]*)```/g)].flatMap(([, query]) => query?.match(/prox\w+/g) ?? []);
  const known = [...networkFamilyNames(), ...Object.keys(DAEMON_FAMILIES)];
  expect(queried.filter((name) => !known.includes(name.replace(/_bucket$/, "")))).toEqual([]);
  expect(queried.length).toBeGreaterThan(5);
});
