import { expect, test } from "vitest";
import { metricsReference } from "../../../scripts/reference/metrics-reference.ts";
import { DAEMON_FAMILIES } from "../../../src/metrics/families/daemon-families.ts";
import type { DaemonFamily } from "../../../src/metrics/families/family.ts";
import { networkFamilyNames } from "../../../src/metrics/families/network-families.ts";
import { FAILURE_REASONS, REJECT_REASONS } from "../../../src/model/label-values.ts";

const text = metricsReference();

test("lists every family once", () => {
  const rows = text.match(/(?<=^\| `)prox[^`]+/gm);
  expect(rows).toEqual([...networkFamilyNames(), ...Object.keys(DAEMON_FAMILIES)]);
});

test("explains every value of a closed label", () => {
  for (const reason of [...FAILURE_REASONS, ...REJECT_REASONS])
    expect(text).toMatch(new RegExp(`\\| \`${reason}\` \\| \\w`));
  const closed = Object.values<DaemonFamily>(DAEMON_FAMILIES).flatMap(({ labels }) => Object.values(labels));
  for (const value of closed.flatMap((values) => values ?? [])) expect(text).toContain(`\`${value}\``);
});

test("queries only existing families in its examples", () => {
  const queried = [...text.matchAll(/```promql\n([^`]*)```/g)].flatMap(([, query]) => query?.match(/prox\w+/g) ?? []);
  const known = [...networkFamilyNames(), ...Object.keys(DAEMON_FAMILIES)];
  expect(queried.filter((name) => !known.includes(name.replace(/_bucket$/, "")))).toEqual([]);
  expect(queried.length).toBeGreaterThan(5);
});
