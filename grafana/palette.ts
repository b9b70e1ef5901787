import {
  type DynamicConfigValue,
  MappingType,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from "@grafana/grafana-foundation-sdk/dashboard";
import type { EPISODE_STATES } from "../src/model/label-values.ts";
import { NODE_STATUSES } from "../src/model/node.ts";
import { OPEN_STATES } from "../src/model/remediation/episode.ts";

/** States of nodes and episodes have the same colors on every dashboard. */
const STATUS_COLORS: Readonly<Record<(typeof NODE_STATUSES)[number], string>> = {
  online: "green",
  offline: "red",
  quarantined: "purple",
  rebooting: "blue",
  maintenance: "#8e8e8e",
  unknown: "orange",
};

const EPISODE_COLORS: Readonly<Record<(typeof EPISODE_STATES)[number], string>> = {
  pending: "yellow",
  firing: "red",
  acting: "blue",
  recovering: "light-green",
  quarantined: "purple",
  probation: "light-purple",
  suspended: "#8e8e8e",
  given_up: "dark-red",
};

const numbered = (states: readonly string[], colors: Readonly<Record<string, string>>): ValueMapping => ({
  type: MappingType.ValueToText,
  options: Object.fromEntries(
    states.map((state, index) => [String(index + 1), { text: state, color: colors[state]!, index }]),
  ),
});

const named = (colors: Readonly<Record<string, string>>): ValueMapping => ({
  type: MappingType.ValueToText,
  options: Object.fromEntries(
    Object.entries(colors).map(([state, color], index) => [state, { text: state, color, index }]),
  ),
});

/** Names and colors of the numbers that `stateNumber` returns. */
export const STATUS_NUMBERS = numbered(NODE_STATUSES, STATUS_COLORS);
export const EPISODE_NUMBERS = numbered(OPEN_STATES, EPISODE_COLORS);

/** Colors of the states in tables. */
export const STATUS_NAMES = named(STATUS_COLORS);
export const EPISODE_NAMES = named(EPISODE_COLORS);

/** Texts for 1 and 0. The value `good` is shown in green, the other one in red. */
export const booleanMapping = (one: string, zero: string, good: 0 | 1): ValueMapping => ({
  type: MappingType.ValueToText,
  options: {
    0: { text: zero, color: good === 0 ? "green" : "red", index: 0 },
    1: { text: one, color: good === 1 ? "green" : "red", index: 1 },
  },
});

/** Texts for the values of `proxywarden_leader`. */
export const LEADER_NUMBERS: ValueMapping = {
  type: MappingType.ValueToText,
  options: {
    0: { text: "stands by", color: "#8e8e8e", index: 0 },
    1: { text: "leads", color: "green", index: 1 },
  },
};

/** Shows the cells of a column as text in the colors of a mapping. */
export const coloredText = (mapping: ValueMapping): DynamicConfigValue[] => [
  { id: "mappings", value: [mapping] },
  { id: "custom.cellOptions", value: { type: "color-text" } },
];

const fixed = (color: string): DynamicConfigValue[] => [{ id: "color", value: { mode: "fixed", fixedColor: color } }];

/** Colors of series that are named after a node status. */
export const statusSeries: readonly (readonly [name: string, properties: DynamicConfigValue[]])[] = Object.entries(
  STATUS_COLORS,
).map(([status, color]) => [status, fixed(color)]);

/** Thresholds: the base color, then colors with the value from which they apply. */
export const steps = (first: string, ...others: readonly (readonly [from: number, color: string])[]) =>
  new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps([{ value: null, color: first }, ...others.map(([value, color]) => ({ value, color }))]);

/** Thresholds of the share of nodes online. */
export const ONLINE_STEPS = steps("red", [0.8, "orange"], [0.95, "green"]);
/** Any value but 0 is red. */
export const NONE_STEPS = steps("green", [1e-9, "red"]);
/** Thresholds of the usage of a node. */
export const USAGE_STEPS = steps("green", [0.8, "orange"], [0.95, "red"]);
