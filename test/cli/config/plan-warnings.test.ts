import { describe, expect, test } from "vitest";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { runInProcess } from "../terminal.ts";

describe("check warns about a max_age that the plan can't keep,", () => {
  /** Runs check with a policy that has this condition and `max_age`. */
  async function checkAge(
    { when, max_age, sections, size }: { when: string; max_age: string; sections: object; size: object | null },
    ...options: readonly string[]
  ) {
    const folder = createTempFolder();
    folder.write("key", "sesame\n");
    folder.write(
      "offline.yaml",
      JSON.stringify({ policies: [{ name: "offline", max_age, when, for: "15m", steps: [{ action: "reboot" }] }] }),
    );
    const file = folder.write(
      "proxywarden.yaml",
      JSON.stringify({
        service: { base_url: "https://proxy.internal", api_key_file: "key", usage_scale: "ratio" },
        state: { path: folder.pathOf("state") },
        policies: ["offline.yaml"],
        ...sections,
      }),
    );
    if (size !== null) {
      const store = orThrow(openSqliteStore(folder.pathOf("state")));
      await store.journal.commit([{ kind: "fact", key: "collect.network_size", value: JSON.stringify(size) }]);
      store.close();
    }
    return runInProcess("check", "--config", file, ...options);
  }
  /** Returns the warnings about the `max_age` of a policy. */
  async function ageWarnings(when: string, max_age: string, sections: object, size: object | null = null) {
    const { err } = await checkAge({ when, max_age, sections, size });
    return err.split("\n").filter((line) => line.includes("max_age"));
  }
  const where = /^warning: \S*offline\.yaml:1:\d+: policies\[0\]\.max_age: /;
  const effect = "will usually be too old, and the verdict unknown";

  test("because the data is read less often, by any expression that reads it", async () => {
    const collect = { nodes: { every: "1m" }, details: { max_age: "15m" }, sessions: { every: "30s" } };
    const when = "node.status == 'offline' && node.cpu_usage > 0.9 && sessions.total > 0";
    const warnings = await ageWarnings(when, "2m", { collect });
    expect(warnings).toEqual([expect.stringMatching(where)]);
    expect(warnings[0]).toContain(
      `max_age: is 2m, but details are read every 15m (collect.details.max_age): node.cpu_usage ${effect}`,
    );
    expect(await ageWarnings("node.status == 'offline'", "1m", { collect })).toEqual([]);
  });

  test("because a cron schedule runs less often", async () => {
    const warnings = await ageWarnings("node.status == 'offline'", "30m", {
      collect: { nodes: { cron: "2 * * * *" } },
    });
    expect(warnings).toEqual([expect.stringMatching(where)]);
    expect(warnings[0]).toContain(
      `max_age: is 30m, but nodes are read every 1h (collect.nodes): node.status ${effect}`,
    );
  });

  test("because the limits slow down polling of a network of this size", async () => {
    const size = { nodes: 5_000, nodePages: 5, sessions: 100_000, sessionPages: 100 };
    const when = "node.cpu_usage > 0.9 && node.status == 'online'";
    const warnings = await ageWarnings(when, "20m", {}, size);
    expect(warnings).toEqual([expect.stringMatching(where)]);
    expect(warnings[0]).toMatch(
      /max_age: is 20m, but details are read every \S+, because .* allow no more: node\.cpu_usage will/,
    );
    expect(await ageWarnings(when, "20m", {})).toEqual([]);
    expect(await ageWarnings(when, "30d", {}, size)).toEqual([]);
  });

  test("and none about the shortest max_age that it expects", async () => {
    for (const nodes of [5_000, 5_100, 5_200]) {
      const policy = {
        when: "node.cpu_usage > 0.9",
        sections: {},
        size: { nodes, nodePages: 6, sessions: 1_000, sessionPages: 1 },
      };
      const { out } = await checkAge({ ...policy, max_age: "20m" }, "--output", "json");
      const [{ expected }] = JSON.parse(out).warnings;
      const [, max_age] = /^must be at least (\w+)$/.exec(expected)!;
      expect((await checkAge({ ...policy, max_age: max_age! })).err).toBe("");
    }
  });

  test("because sessions are as old as the walk that read them", async () => {
    const size = { nodes: 100, nodePages: 1, sessions: 300_000, sessionPages: 300 };
    const warnings = await ageWarnings("sessions.error > 5", "70s", { limits: { plan: "enterprise" } }, size);
    expect(warnings).toEqual([expect.stringMatching(where)]);
    expect(warnings[0]).toMatch(
      /sessions are read every 1m \(collect\.sessions\), and are \S+ old at the end of the next walk: sessions\.error will/,
    );
  });
});

describe("check warns about a cron schedule that the monthly limit does not allow:", () => {
  /** Returns what it says about a schedule with a run every five minutes. */
  async function skipped(calls_per_month: number, ...options: readonly string[]) {
    const folder = createTempFolder();
    const config = {
      service: { base_url: "https://proxy.internal", api_key: "sesame", usage_scale: "ratio" },
      state: { path: folder.pathOf("state") },
      limits: { plan: { calls_per_month } },
      collect: { nodes: { cron: "*/5 * * * *" } },
    };
    const file = folder.write("proxywarden.yaml", JSON.stringify(config));
    const { err } = await runInProcess("check", "--config", file, ...options);
    return /collect\.nodes\.cron: runs every 5m, which the plan's calls per month don't allow: (.*)\n/.exec(err)?.[1];
  }

  test("it never runs if no calls are left for polling", async () => {
    expect(await skipped(1)).toBe("all runs are skipped");
  });

  test("more runs are skipped if a run takes more than one call, unless the size of the list is known", async () => {
    expect(await skipped(5_000)).toMatch(/^\d+ of \d+ runs are skipped, and more if a run takes more than one call$/);
    expect(await skipped(5_000, "--nodes", "5000")).toMatch(/^\d+ of \d+ runs are skipped$/);
  });
});
