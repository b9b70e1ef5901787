// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are YAML, and hold its variables
import { describe, expect, test } from "vitest";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import { loadPolicyText, policyErrors } from "../config-fixtures.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const SECTIONS = `
time_intervals: [{ name: nights, months: [1] }]
prometheus: { url: "http://prometheus:9090" }
alertmanager: { url: "http://alertmanager:9093" }
receivers: [{ name: oncall, alertmanager: true }, { name: chat, webhook_url_file: hook }]
`;

const MINIMAL_POLICY = "policies:\n  - name: p\n    when: node.status\n    for: 15m\n    steps: [{ action: reboot }]\n";

const policies = (text: string): readonly PolicySpec[] => loadPolicyText(text, SECTIONS).policies;

test("a minimal policy is a dry run for every node, with the default durations", () => {
  expect(policies(MINIMAL_POLICY)).toEqual([
    {
      name: "p",
      mode: "dry_run",
      match: null,
      when: "node.status",
      forMs: 15 * MINUTE,
      clearForMs: 10 * MINUTE,
      maxAgeMs: null,
      steps: [{ action: "reboot", force: false, verify: { withinMs: 10 * MINUTE, expect: null } }],
      retry: { episodes: 2, everyMs: 6 * HOUR, forgetAfterMs: 24 * HOUR },
      windows: [],
      blockedBy: [],
    },
  ]);
});

test("every key is read", () => {
  const text = `
policies:
  - name: reboot-offline
    mode: enforce
    match: node.country in ["DE", "FR"]
    when: node.status == "offline" && now - node.last_seen > duration("10m")
    for: 1m
    clear_for: 2m
    max_age: 3m
    steps:
      - { action: disconnect }
      - { action: disconnect, verify: { within: 4m, expect: node.active_sessions == 0 } }
      - { action: reboot, force: true, verify: { within: 5m } }
      - { action: quarantine, duration: 24h }
      - { action: quarantine, duration: 90m, reason: "{{policy}} {{node}}", verify: { expect: node.ok } }
      - { action: notify, receiver: oncall }
    retry: { episodes: 3, every: 6m, forget_after: 7m }
    windows: [nights]
    blocked_by:
      - { query: 'ALERTS{alertname="Upstream",alertstate="firing"}' }
      - { alerts: ['severity="critical"', 'team=~"a|b"'] }
`;
  expect(policies(text)).toEqual([
    {
      name: "reboot-offline",
      mode: "enforce",
      match: 'node.country in ["DE", "FR"]',
      when: 'node.status == "offline" && now - node.last_seen > duration("10m")',
      forMs: MINUTE,
      clearForMs: 2 * MINUTE,
      maxAgeMs: 3 * MINUTE,
      steps: [
        { action: "disconnect", verify: { withinMs: 3 * MINUTE, expect: null } },
        { action: "disconnect", verify: { withinMs: 4 * MINUTE, expect: "node.active_sessions == 0" } },
        { action: "reboot", force: true, verify: { withinMs: 5 * MINUTE, expect: null } },
        {
          action: "quarantine",
          durationMs: 24 * HOUR,
          reason: "{{policy}}: {{when}} ({{episode}})",
          verify: { withinMs: 5 * MINUTE, expect: null },
        },
        {
          action: "quarantine",
          durationMs: 90 * MINUTE,
          reason: "{{policy}} {{node}}",
          verify: { withinMs: 5 * MINUTE, expect: "node.ok" },
        },
        { action: "notify", receiver: "oncall" },
      ],
      retry: { episodes: 3, everyMs: 6 * MINUTE, forgetAfterMs: 7 * MINUTE },
      windows: ["nights"],
      blockedBy: [
        { kind: "query", query: 'ALERTS{alertname="Upstream",alertstate="firing"}' },
        { kind: "alerts", matchers: ['severity="critical"', 'team=~"a|b"'] },
      ],
    },
  ]);
});

/** The errors of the least policy with another text for a line of it, or with one more. */
const errorsWithChange = (key: string, value: string): string[] => {
  const line = new RegExp(`${key}: .*`);
  const text = line.test(MINIMAL_POLICY)
    ? MINIMAL_POLICY.replace(line, `${key}:${value}`)
    : `${MINIMAL_POLICY}    ${key}:${value}\n`;
  return policyErrors(text, SECTIONS);
};

describe("an empty value is rejected, and never means all:", () => {
  const expected = "must be a CEL expression";
  test.each([
    ["match", "", `6:11: policies[0].match: found nothing; ${expected}; it may be left out`],
    ["match", ' ""', `6:12: policies[0].match: found ""; ${expected}`],
    ["match", ' "  "', `6:12: policies[0].match: found "  "; ${expected}`],
    ["match", " []", `6:12: policies[0].match: found an empty list; ${expected}; quote it, or YAML reads it as a list`],
    ["when", ' ""', `3:11: policies[0].when: found ""; ${expected}`],
    ["steps", " []", "5:12: policies[0].steps: found an empty list; must have at least one step"],
    ["steps", "", "5:11: policies[0].steps: found nothing; must be a list of steps, at most 20"],
    [
      "blocked_by",
      " [{ alerts: [] }]",
      "6:28: policies[0].blocked_by[0].alerts: found an empty list; must have at least one matcher, because without one every alert would block",
    ],
  ])("%s:%s", (key, value, error) => {
    expect(errorsWithChange(key, value)).toEqual([error]);
  });
});

test("an expression that YAML reads as something other than text must be quoted", () => {
  const text = `policies:
  - name: restart
    match: true
    when: [node.status]
    for: 1m
    steps:
      - { action: reboot, verify: { expect: 1.5 } }
  - name: quarantine
    match: !!bool false
    when: { node.status: x }
    for: 1m
    steps: [{ action: reboot }]
`;
  const hint = (kind: string) => `must be a CEL expression; quote it, or YAML reads it as a ${kind}`;
  expect(policyErrors(text, SECTIONS)).toEqual([
    `3:12: policies[0].match: found true; ${hint("boolean")}`,
    `4:11: policies[0].when: found a list; ${hint("list")}`,
    `7:45: policies[0].steps[0].verify.expect: found 1.5; ${hint("number")}`,
    `9:19: policies[1].match: found false; ${hint("boolean")}`,
    `10:5: policies[1].when: found a mapping; ${hint("mapping")}`,
  ]);
});

describe("is rejected with the position and the expected value:", () => {
  test.each([
    [
      "mode",
      " enforced",
      '6:11: policies[0].mode: found "enforced"; must be one of dry_run, approve, enforce; did you mean "enforce"?',
    ],
    [
      "name",
      " a b",
      '2:11: policies[0].name: found "a b"; must be a name of at most 64 letters, digits, -, _ and . that begins with a letter or digit',
    ],
    ["for", " 366d", '4:10: policies[0].for: found "366d"; must be a duration from 0s to 365d'],
    [
      "retry",
      " { every: 31d, forget_after: 30d }",
      '6:21: policies[0].retry.every: found "31d"; must be a duration from 1m to 30d',
    ],
    [
      "retry",
      " { forget_after: 31d }",
      '6:28: policies[0].retry.forget_after: found "31d"; must be a duration from 1m to 30d',
    ],
    [
      "retry",
      " { episodes: 2, every: 2d, forget_after: 1d }",
      '6:52: policies[0].retry.forget_after: found "1d"; must not be shorter than every, because then no episode would ever count',
    ],
    [
      "steps",
      " [{ action: restart }]",
      '5:23: policies[0].steps[0].action: found "restart"; must be one of disconnect, reboot, quarantine, notify',
    ],
    [
      "steps",
      " [{ action: reboot, forec: true }]",
      '5:31: policies[0].steps[0].forec: unknown key; did you mean "force"?',
    ],
    [
      "steps",
      " [{ action: quarantine }]",
      "5:13: policies[0].steps[0].duration: missing; a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d",
    ],
    [
      "steps",
      " [{ action: quarantine, duration: 90s }]",
      '5:45: policies[0].steps[0].duration: found "90s"; must be whole minutes, such as 90m',
    ],
    [
      "steps",
      " [{ action: quarantine, duration: 31d }]",
      '5:45: policies[0].steps[0].duration: found "31d"; must be a duration from 1m to 30d',
    ],
    [
      "steps",
      ' [{ action: quarantine, duration: 1h, reason: "by {{polcy}}" }]',
      '5:61: policies[0].steps[0].reason: found "{{polcy}}"; must have no placeholders except {{policy}}, {{when}}, {{episode}}, {{node}}; did you mean "{{policy}}"?',
    ],
    [
      "steps",
      ' [{ action: quarantine, duration: 1h, reason: "by {{ node }}" }]',
      '5:61: policies[0].steps[0].reason: found "{{ node }}"; must have no placeholders except {{policy}}, {{when}}, {{episode}}, {{node}}; did you mean "{{node}}"?',
    ],
    [
      "steps",
      " [{ action: notify, receiver: oncal }]",
      '5:41: policies[0].steps[0].receiver: found "oncal"; must be the name of a receiver: oncall, chat; did you mean "oncall"?',
    ],
    [
      "steps",
      ' [{ action: reboot, verify: { expect: "node.x && wrong" } }]',
      '5:60: policies[0].steps[0].verify.expect: found "wrong"; must be a CEL expression: something is wrong',
    ],
    [
      "windows",
      " [night]",
      '6:15: policies[0].windows[0]: found "night"; must be the name of a time interval: nights; did you mean "nights"?',
    ],
    ["blocked_by", " [{}]", "6:18: policies[0].blocked_by[0]: found no keys; must have either query or alerts"],
    [
      "blocked_by",
      " [{ alerts: [critical] }]",
      '6:29: policies[0].blocked_by[0].alerts[0]: found "critical"; must be an Alertmanager matcher, such as severity="critical"',
    ],
    [
      "blocked_by",
      ` [{ alerts: ['team=~"(a|b"'] }]`,
      String.raw`6:36: policies[0].blocked_by[0].alerts[0]: found "\"(a|b\""; must have a valid regular expression: unterminated group`,
    ],
    [
      "blocked_by",
      " [{ query: 'up{job!~\"*proxy\"} == 0' }]",
      String.raw`6:36: policies[0].blocked_by[0].query: found "\"*proxy\"} == 0"; must have a valid regular expression: nothing to repeat`,
    ],
  ])("%s:%s", (key, value, error) => {
    expect(errorsWithChange(key, value)).toEqual([error]);
  });
});

describe("an error in an expression has its position in the file, in every YAML style:", () => {
  test.each([
    ["plain", " node.a && wrong", "3:21"],
    ["plain, over lines", " node.a\n      && wrong", "4:10"],
    ["single-quoted", " 'a == ''b'' && wrong'", "3:26"],
    ["double-quoted", ' "a == \\"b\\" && wrong"', "3:26"],
    ["literal", " |\n      node.a\n      && wrong", "5:10"],
    ["folded", " >-\n      node.a\n      && wrong", "5:10"],
    ["with a variable, which is not located", ' "${LONG} && wrong"', "3:11"],
  ])("%s", (_, value, place) => {
    const text = MINIMAL_POLICY.replace(/when: .*/, () => `when:${value}`);
    const found = policyErrors(text, SECTIONS, { LONG: "node.active_sessions == 3" });
    expect(found.map((error) => error.split(": ").slice(0, 2).join(": "))).toEqual([`${place}: policies[0].when`]);
  });
});

describe("a policy may only refer to what the configuration defines:", () => {
  test.each([
    [
      "blocked_by: [{ query: up }]",
      '6:27: policies[0].blocked_by[0].query: found "up"; needs the section prometheus, with its url',
    ],
    [
      "blocked_by: [{ alerts: ['a=\"b\"'] }]",
      '6:29: policies[0].blocked_by[0].alerts[0]: found "a=\\"b\\""; needs the section alertmanager, with its url',
    ],
    [
      "windows: [nights]",
      '6:15: policies[0].windows[0]: found "nights"; must be the name of a time interval; the section time_intervals has none',
    ],
  ])("%s", (line, expected) => {
    expect(policyErrors(`${MINIMAL_POLICY}    ${line}\n`)).toEqual([expected]);
  });
});

test("an error about an unknown name lists at most 20 of the known ones", () => {
  const intervals = Array.from({ length: 21 }, (_, index) => `- { name: i${index} }`).join("\n");
  expect(policyErrors(`${MINIMAL_POLICY}    windows: [nights]\n`, `time_intervals:\n${intervals}\n`)).toEqual([
    expect.stringMatching(/must be the name of a time interval: i0, i1, .*, i19 and 1 more$/),
  ]);
});
