import fc from "fast-check";

const optional = <T extends object>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(shape, { requiredKeys: [] });

const duration = fc.integer({ min: 1, max: 59 }).map((minutes) => `${minutes}m`);
const percent = fc.integer({ min: 0, max: 100 }).map((value) => `${value}%`);
const amount = fc.nat(1_000_000);
const mode = fc.constantFrom("dry_run", "approve", "enforce");
const perDomain = fc.oneof(
  fc.record({ region: amount }, { requiredKeys: ["region"] }),
  fc.record({ region: amount, country: amount }, { requiredKeys: ["country"] }),
);
const expression = fc.constantFrom('node.status == "offline"', "node.a", "now - node.b\n  > c");

const spec = fc.record(
  {
    times: fc.constantFrom([{ start_time: "23:00", end_time: "24:00" }]),
    weekdays: fc.constantFrom(["monday:friday"], ["sunday", "Saturday"]),
    days_of_month: fc.constantFrom(["1:5", -1, 31], ["-3:-1"]),
    months: fc.constantFrom(["january", "3:6", 12]),
    years: fc.constantFrom([2026], ["2026:2027"]),
    location: fc.constantFrom("Europe/Paris", "UTC", "America/New_York", "Local"),
  },
  { requiredKeys: ["times"] },
);
const name = fc.record({ name: fc.constant("nights") });
const interval = fc.oneof(
  fc.tuple(name, spec).map(([named, own]) => ({ ...named, ...own })),
  fc
    .tuple(name, fc.array(spec, { minLength: 1, maxLength: 2 }))
    .map(([named, specs]) => ({ ...named, time_intervals: specs })),
);

const server = fc.record(
  {
    url: fc.webUrl({ validSchemes: ["http", "https"] }),
    basic_auth: fc.constantFrom({ username: "u", password: "p" }, { username: "u", password_file: "f" }),
    tls_config: fc.constantFrom({}, { ca_file: "f", insecure_skip_verify: true }, { cert_file: "f", key_file: "f" }),
  },
  { requiredKeys: ["url"] },
);
const authorized = fc.record({
  url: fc.constant("http://h"),
  authorization: fc.constantFrom({ credentials_file: "f" }, { type: "Token", credentials: "c" }),
});

/** Sections of a configuration about remediation that are fine. */
export const remediation = {
  safety: optional({
    mode,
    trust: optional({
      min_inventory: percent,
      max_missing: percent,
      max_unknown: percent,
      max_freshest_last_seen: duration,
      warmup_walks: fc.nat(100),
    }),
    max_unhealthy: optional({ percent }),
    max_disrupted: optional({ percent, amount }),
    max_disrupted_per: perDomain,
    min_online_per: perDomain,
    max_in_flight: fc.nat(1_000),
    max_actions: optional({ amount, per: duration }),
    breaker: optional({ percent, amount, within: duration }),
    cooldown: duration,
    storm_cooldown: duration,
    correlated: optional({
      by: fc.constantFrom("region", "country"),
      nodes: fc.integer({ min: 2, max: 9 }),
      percent,
      within: duration,
    }),
    canary: fc.boolean(),
    protected: expression,
    efficacy: optional({ window: fc.integer({ min: 1, max: 1_000 }), min_success: percent }),
  }),
  time_intervals: fc.array(interval, { maxLength: 1 }),
  prometheus: fc.oneof(server, authorized),
  alertmanager: server,
  receivers: fc.constantFrom(
    [],
    [{ name: "a", webhook_url: "https://h/x?y=z" }],
    [
      { name: "a", webhook_url_file: "f" },
      { name: "b", webhook_url: "http://h" },
    ],
  ),
};

const verify = optional({ within: duration, expect: expression });
const step = fc.oneof(
  fc.record({ action: fc.constant("disconnect"), verify }, { requiredKeys: ["action"] }),
  fc.record({ action: fc.constant("reboot"), force: fc.boolean(), verify }, { requiredKeys: ["action"] }),
  fc.record(
    {
      action: fc.constant("quarantine"),
      duration,
      reason: fc.constantFrom("{{policy}}", "since then", "{{node}} {{episode}} {{when}}"),
      verify,
    },
    { requiredKeys: ["action", "duration"] },
  ),
  fc.constant({ action: "notify", receiver: "oncall" }),
);

/**
 * A policy that is fine where there are a Prometheus, an Alertmanager, the window `nights` and the receiver `oncall`.
 */
export const validPolicy = fc.record(
  {
    name: fc.constantFrom("reboot-offline", "a", "9_.x"),
    mode,
    match: expression,
    when: expression,
    for: duration,
    clear_for: duration,
    max_age: duration,
    steps: fc.array(step, { minLength: 1, maxLength: 4 }),
    retry: optional({ episodes: fc.nat(100), every: duration, forget_after: fc.constant("7d") }),
    windows: fc.subarray(["nights"]),
    blocked_by: fc.subarray([{ query: "up == 0" }, { alerts: ['severity="critical"', "team=~a"] }]),
  },
  { requiredKeys: ["name", "when", "for", "steps"] },
);
