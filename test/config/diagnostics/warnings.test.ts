import { describe, expect, test } from "vitest";
import { ok } from "../../../src/base/result.ts";
import { CONFIG_CHECKS } from "../../../src/cli/config/config-loading.ts";
import { formatProblem } from "../../../src/config/diagnostics/problem.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { configWarnings, loadWith, sourceOf, withService } from "../config-fixtures.ts";

const SERVICE = `service: { base_url: "https://h", api_key_file: key }\n`;
const ADMIN = "web: { admin_token_file: token }\n";

const policy = (keys: string): string =>
  `policies:\n  - name: p\n    for: 15m\n    steps: [{ action: reboot }]\n    ${keys.replaceAll("\n", "\n    ")}\n`;

/** The warnings of a configuration and of its one policy file. */
function warningsFor(text: string, policies: string): string[] {
  const loaded = loadWith(`${text}policies: [a.yaml]\n`, { "a.yaml": policies });
  return loaded.ok ? loaded.value.warnings.map(formatProblem) : loaded.error.map(formatProblem);
}

test("warns of conditions that hold for no node, or for all", () => {
  const text =
    'policies:\n  - {name: p, when: \'node.region == "a" && node.region == "b"\', for: 1m, steps: [{action: reboot}]}\n';
  const read = { readFile: (path: string) => ok(path === "a.yaml" ? text : "sesame"), listFiles: () => ["a.yaml"] };
  const config = withService(
    'policies: [a.yaml]\nsafety: { protected: \'node.region == "a" || node.region != "a"\' }\n',
  );
  const loaded = loadConfig({ ...sourceOf(config), ...read, checks: CONFIG_CHECKS });
  expect(loaded.ok && loaded.value.warnings.map(formatProblem)).toEqual([
    "p.yaml:3:22: safety.protected: always holds, whatever the value of node.region",
    "a.yaml:2:21: policies[0].when: never holds, whatever the value of node.region",
  ]);
});

describe("match and when together", () => {
  function warningsOf(match: string, when: string): readonly string[] {
    const text = policy(`match: ${JSON.stringify(match)}\nwhen: ${JSON.stringify(when)}`);
    const read = { readFile: (path: string) => ok(path === "a.yaml" ? text : "sesame"), listFiles: () => ["a.yaml"] };
    const loaded = orThrow(
      loadConfig({ ...sourceOf(withService("policies: [a.yaml]\n")), ...read, checks: CONFIG_CHECKS }),
    );
    return loaded.warnings.map(formatProblem);
  }

  test.each([
    ['node.region == "a"', 'node.region == "b" && node.status == "offline"', "node.region, node.status"],
    ['node.country in ["DE"] // Germany', 'node.country in ["FR"]', "node.country"],
  ])("are warned of if no node satisfies %s and %s", (match, when, fields) => {
    expect(warningsOf(match, when)).toEqual([
      `a.yaml:6:11: policies[0].when: never holds where match does, whatever the value of ${fields}`,
    ]);
  });

  test.each([
    ['node.region == "a"', 'node.region != "b"', 0],
    ['node.region == "a" || node.country == "DE"', 'node.region == "b"', 0],
    // One of them never holds by itself, which is warned of once.
    ['node.region == "a" && node.region == "b"', 'node.region == "c"', 1],
  ])("are not if some may satisfy %s and %s, or none satisfies one of them", (match, when, count) => {
    expect(warningsOf(match, when)).toHaveLength(count);
  });
});

describe("warns of a limit that holds every action:", () => {
  const NO_ACTION = "is 0, so no action is taken";
  test.each([
    ["max_unhealthy: { percent: 0% }", "3:29: safety.max_unhealthy.percent"],
    ["max_disrupted: { percent: 0% }", "3:29: safety.max_disrupted.percent"],
    ["max_disrupted: { amount: 0 }", "3:28: safety.max_disrupted.amount"],
    ["max_disrupted_per: { region: 3, country: 0 }", "3:44: safety.max_disrupted_per.country"],
    ["max_in_flight: 0", "3:18: safety.max_in_flight"],
    ["max_actions: { amount: 0 }", "3:26: safety.max_actions.amount"],
    ["breaker: { percent: 0%, amount: 0 }", "3:12: safety.breaker"],
  ])("%s", (limit, place) => {
    expect(configWarnings(withService(`safety:\n  ${limit}\n`))).toEqual([`${place}: ${NO_ACTION}`]);
  });

  test("retry: { episodes: 0 }", () => {
    expect(warningsFor(withService(""), policy("when: node.a\nretry: { episodes: 0 }"))).toEqual([
      "a.yaml:6:24: policies[0].retry.episodes: is 0, so this policy acts on no node",
    ]);
  });

  test("a share above 0 allows one node at a time, and causes no warning", () => {
    expect(
      configWarnings(withService("safety: { max_disrupted: { percent: 0.01% }, breaker: { amount: 0 } }")),
    ).toEqual([]);
  });
});

describe("warns of a limit that limits nothing:", () => {
  test.each([
    ["trust: { min_inventory: 0% }", "3:27: safety.trust.min_inventory", "a walk that shows no node is trusted"],
    ["trust: { max_missing: 100% }", "3:25: safety.trust.max_missing", "a walk that misses every node is trusted"],
    [
      "trust: { max_unknown: 100% }",
      "3:25: safety.trust.max_unknown",
      "records that can't be read never make a walk untrusted",
    ],
    ["max_unhealthy: { percent: 100% }", "3:29: safety.max_unhealthy.percent", "there is never a storm"],
  ])("%s", (limit, place, what) => {
    expect(configWarnings(withService(`safety:\n  ${limit}\n`))).toEqual([`${place}: limits nothing: ${what}`]);
  });
});

test("warns of a step that ends before its node is read again", () => {
  const within = (time: string) =>
    warningsFor(
      withService(""),
      policy("when: node.a").replace("action: reboot", `action: reboot, verify: { within: ${time} }`),
    );
  expect(within("14s")).toEqual([
    "a.yaml:4:49: policies[0].steps[0].verify.within: is 14s, but apart from regular polling, a node is read again no earlier than 15s after an action, so the step ends with the first read, whether or not it has had time to help",
  ]);
  expect(within("15s")).toEqual([]);
});

test("warns of what is probably a mistake in an expression", () => {
  const steps = "steps: [{ action: reboot, verify: { expect: node.doubtful } }]";
  const text = policy("match: node.doubtful\nwhen: node.doubtful").replace("steps: [{ action: reboot }]", steps);
  expect(warningsFor(withService("safety: { protected: node.doubtful }\n"), text)).toEqual([
    "p.yaml:2:22: safety.protected: is doubtful",
    "a.yaml:4:49: policies[0].steps[0].verify.expect: is doubtful",
    "a.yaml:5:12: policies[0].match: is doubtful",
    "a.yaml:6:11: policies[0].when: is doubtful",
  ]);
});

test("warns of a mode above the ceiling", () => {
  const text = policy("when: node.a\nmode: enforce");
  expect(warningsFor(withService(""), text)).toEqual([
    "a.yaml:6:11: policies[0].mode: enforce is above safety.mode, which limits it to dry_run",
  ]);
  expect(warningsFor(withService(`${ADMIN}safety: { mode: enforce }\n`), text)).toEqual([]);
});

test("warns if policies act and there is no operator", () => {
  const text = policy("when: node.a\nmode: approve");
  expect(warningsFor(withService("safety: { mode: enforce }\n"), text)).toEqual([
    "p.yaml:1:1: web.operators: none, so no operator can pause the daemon, approve an action or reset the breaker",
  ]);
  expect(warningsFor(withService("safety: { mode: enforce }\n"), policy("when: node.a"))).toEqual([]);
});

test("warns of each expression that reads usage of an unknown scale", () => {
  const keys = "match: node.a\nwhen: node.cpu_usage > node.disk_usage\n";
  const steps = "steps: [{ action: reboot, verify: { expect: node.cpu_usage } }]";
  const text = policy(keys).replace("steps: [{ action: reboot }]", steps);
  const unset =
    "p.yaml:1:1: service.usage_scale: not set: CPU, memory and disk usage are not exported, and unknown in policies; check --probe shows which it is";
  const unknown = "unknown while service.usage_scale is not set";
  expect(warningsFor(SERVICE, text)).toEqual([
    unset,
    `a.yaml:4:49: policies[0].steps[0].verify.expect: reads node.cpu_usage: ${unknown}`,
    `a.yaml:6:11: policies[0].when: reads node.cpu_usage, node.disk_usage: ${unknown}`,
  ]);
  expect(warningsFor(withService(""), text)).toEqual([]);
  expect(warningsFor(`${SERVICE}safety:\n  protected: node.disk_usage\n`, policy("when: node.a"))).toEqual([
    unset,
    "p.yaml:3:14: safety.protected: reads node.disk_usage: unknown while service.usage_scale is not set; no action is taken on a node whose protection depends on usage",
  ]);
});

describe("time intervals", () => {
  const WARNED = "ends at midnight, and nothing continues it at 00:00 on the next day, for example after";
  const MORNING = "the hours after midnight need an interval of their own, with the days on which they fall";
  const EVENING = '{ start_time: "17:00", end_time: "24:00" }';
  const EARLY = '{ start_time: "00:00", end_time: "09:00" }';

  test.each([
    [
      "both ends of a weekend's days",
      `weekdays: [saturday, sunday]\ntimes: [${EARLY}, ${EVENING}]`,
      1,
      "Sunday, 2028-01-02",
    ],
    ["an evening alone", `times: [${EVENING}]`, 0, "Saturday, 2028-01-01"],
    ["the last day of each month", `days_of_month: [-1]\ntimes: [${EVENING}, ${EARLY}]`, 0, "Monday, 2028-01-31"],
    ["a year's end", `years: [2027]\ntimes: [${EVENING}, ${EARLY}]`, 0, "Friday, 2027-12-31"],
  ])("%s: warns of a range that ends at midnight and is not continued", (_, keys, index, day) => {
    const text = `time_intervals:\n  - name: n\n    ${keys.replaceAll("\n", "\n    ")}\n`;
    expect(configWarnings(withService(text))).toEqual([
      expect.stringMatching(
        new RegExp(`^\\d+:\\d+: time_intervals\\[0\\]\\.times\\[${index}\\]\\.end_time: ${WARNED} ${day}; ${MORNING}$`),
      ),
    ]);
  });

  test.each([
    ["every night", `times: [${EVENING}, ${EARLY}]`],
    ["whole days", 'weekdays: [sunday]\ntimes: [{ start_time: "00:00", end_time: "24:00" }]'],
    [
      "a night whose morning is an interval of its own",
      `time_intervals: [{ weekdays: [friday], times: [${EVENING}] }, { weekdays: [saturday], times: [${EARLY}] }]`,
    ],
    [
      "an evening before a day that is open",
      `time_intervals: [{ weekdays: [friday], times: [${EVENING}] }, { weekdays: [saturday] }]`,
    ],
  ])("%s: no warning", (_, keys) => {
    const text = `time_intervals:\n  - name: n\n    ${keys.replaceAll("\n", "\n    ")}\n`;
    expect(configWarnings(withService(text))).toEqual([]);
  });

  test.each([
    ["months: ['6:8', 13]", "months[1]: is not a month, so it matches nothing; months are from 1 to 12"],
    ["months: ['-1']", "months[0]: is not a month, so it matches nothing; months are from 1 to 12"],
    [
      "months: [february]\ndays_of_month: ['30:31']",
      "days_of_month: are not days of these months, so it is never open",
    ],
  ])("%s: warns of what matches nothing, which Alertmanager accepts", (keys, warned) => {
    const text = `time_intervals:\n  - name: n\n    ${keys.replaceAll("\n", "\n    ")}\n`;
    expect(configWarnings(withService(text))).toEqual([expect.stringContaining(`: time_intervals[0].${warned}`)]);
  });

  test.each(["months: ['11:13']", "months: [february, april]\ndays_of_month: ['30']", "days_of_month: ['-31']"])(
    "%s: no warning, because it matches a day",
    (keys) => {
      const text = `time_intervals:\n  - name: n\n    ${keys.replaceAll("\n", "\n    ")}\n`;
      expect(configWarnings(withService(text))).toEqual([]);
    },
  );

  describe("on 1 March 2026", () => {
    const warningsOf = (keys: string) => {
      const text = withService(`time_intervals:\n  - name: n\n    ${keys.replaceAll("\n", "\n    ")}\n`);
      const loaded = loadConfig({ ...sourceOf(text), now: Date.UTC(2026, 2, 1, 12) });
      return loaded.ok ? loaded.value.warnings.map(({ message }) => message) : ["not loaded"];
    };

    test.each([
      "years: ['2024:2025']",
      "years: [2024, 2025]\ntimes: [{ start_time: '22:00', end_time: '24:00' }]",
      "years: [2026]\nmonths: ['1:2']\ndays_of_month: ['1:27']",
      "years: [26]",
      "time_intervals: [{ years: [2024] }, { years: [2026], months: [january] }]",
    ])("warns of one whose days are all past: %s", (keys) => {
      expect(warningsOf(keys)).toEqual(["all of its days are in the past, so it is never open again"]);
    });

    test.each([
      "years: ['2024:2026']",
      "years: [2026]\nmonths: ['2:3']",
      // In some time zones it is still February.
      "years: [2026]\nmonths: [february]",
      "years: [2025, 2100]\nmonths: [january]",
      "years: [999999]",
      "months: [february]",
      "time_intervals: [{ years: [2024] }, { weekdays: [monday] }]",
    ])("does not warn of one that is open again: %s", (keys) => {
      expect(warningsOf(keys)).toEqual([]);
    });

    test("warns only of the month if there is none", () => {
      expect(warningsOf("years: [2025]\nmonths: [13]")).toEqual([
        "is not a month, so it matches nothing; months are from 1 to 12",
      ]);
    });
  });

  test("warns of one that is never open", () => {
    const text = "time_intervals:\n  - name: a\n  - name: b\n    time_intervals: [{ weekdays: [] }]\n";
    expect(configWarnings(withService(text))).toEqual([
      "3:5: time_intervals[0]: has no interval, so it is never open",
      "5:34: time_intervals[1].time_intervals[0].weekdays: is empty, so it is never open; leave it out to restrict nothing",
    ]);
  });
});
