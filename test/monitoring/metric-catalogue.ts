import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import { DAEMON_FAMILIES } from "../../src/metrics/families/daemon-families.ts";
import type { DaemonFamily } from "../../src/metrics/families/family.ts";
import { NETWORK_FAMILIES } from "../../src/metrics/families/network-families.ts";
import { NODE_INFO } from "../../src/metrics/families/node-families.ts";
import { NODE_LABELS, NODE_STATUSES } from "../../src/model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../src/model/session.ts";
import { parsePromql } from "./promql.ts";
import { ruleGroups } from "./rule-files.ts";

/** Possible values of each label, or null if they are not known beforehand. */
type Labels = Readonly<Record<string, readonly string[] | null>>;

/** Labels by the name of a series in queries. Null means any labels. */
export type SeriesCatalog = ReadonlyMap<string, Labels | null>;

/** Labels that Prometheus adds to every series of a target. `pod` is added by the Prometheus Operator. */
const TARGET_LABELS: Labels = { instance: null, job: null, pod: null };

/** Returns every series of a scrape of the daemon: those of the tables, of the process and of the scrape itself. */
export async function catalogOfScrape(): Promise<SeriesCatalog> {
  const own = Object.entries<DaemonFamily>(DAEMON_FAMILIES).map(
    ([name, { type, labels }]) => [name, type, labels] as const,
  );
  const network = NETWORK_FAMILIES.map((family) => [family.name, family.type, networkLabels(family)] as const);
  const process = [...(await createDaemonMetrics().render("text")).matchAll(/^((?:process|nodejs)_\w+)/gm)].map(
    ([, name]) => [name!, "gauge", {}] as const,
  );
  const all = [...own, ...network, ...process].flatMap(([name, type, labels]) => seriesOf(name, type, labels));
  return new Map<string, Labels | null>([...all, ["up", TARGET_LABELS]]);
}

function networkLabels(family: (typeof NETWORK_FAMILIES)[number]): Labels {
  const statuses = family.name.endsWith("sessions") ? SESSION_STATUSES : NODE_STATUSES;
  const closed: Labels = { status: statuses, session_type: SESSION_TYPES };
  const names = family === NODE_INFO ? [...family.labels, ...NODE_LABELS] : family.labels;
  return Object.fromEntries(names.map((name) => [name, closed[name] ?? null]));
}

function seriesOf(name: string, type: string, labels: Labels): (readonly [string, Labels])[] {
  const all = { ...labels, ...TARGET_LABELS };
  if (type !== "histogram") return [[name, all]];
  return [
    [`${name}_bucket`, { ...all, le: null }],
    [`${name}_sum`, all],
    [`${name}_count`, all],
  ];
}

/** The series of a scrape, those that the shipped rules record, and the alerts. */
export async function catalogOfRules(): Promise<SeriesCatalog> {
  const recorded = ruleGroups.flatMap(({ rules }) => rules.flatMap(({ record }) => record ?? []));
  const ofRules = [...recorded, "ALERTS"].map((name) => [name, null] as const);
  return new Map([...(await catalogOfScrape()), ...ofRules]);
}

/** Everything that an expression says of series which are not there, or could never match. */
export function findExpressionProblems(expression: string, catalogue: SeriesCatalog): readonly string[] {
  const { error, selectors, groupings } = parsePromql(expression);
  if (error !== null) return [`not PromQL: ${error}`];
  const known: Labels[] = [TARGET_LABELS];
  let knowsAll = true;
  const problems: string[] = [];
  for (const { name, matchers } of selectors) {
    const labels = catalogue.get(name);
    if (labels === undefined) problems.push(`there is no ${name}`);
    else if (labels === null) knowsAll = false;
    else {
      known.push(labels);
      problems.push(...matchers.flatMap((matcher) => matcherProblems(name, labels, matcher)));
    }
  }
  if (knowsAll) {
    const strange = groupings.filter((label) => !known.some((labels) => label in labels));
    problems.push(...strange.map((label) => `nothing here has a label ${label}`));
  }
  return problems;
}

interface MatcherOf {
  readonly label: string;
  readonly op: string;
  readonly value: string;
}

function matcherProblems(name: string, labels: Labels, { label, op, value }: MatcherOf): string[] {
  const values = labels[label];
  if (values === undefined) return [`${name} has no label ${label}`];
  if (values === null || !/^[\w|]+$/.test(value)) return [];
  const wanted = op.endsWith("~") ? value.split("|") : [value];
  return wanted.filter((value) => !values.includes(value)).map((value) => `${label} of ${name} is never ${value}`);
}

/** The family that a series is of, as the tables call it. */
export const familyOf = (series: string): string => series.replace(/_(?:bucket|sum|count)$/, "");
