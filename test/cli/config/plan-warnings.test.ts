import { describe, expect, test } from "vitest";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { runInProcess } from "../terminal.ts";

describe("check warns about a max_age that the plan can't keep,", () => {
  /** Returns the warnings about a policy with this condition and `max_age`. */
  async function ageWarnings(when: string, max_age: string, sections: object, size: object | null = null) {
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
    const { err } = await runInProcess("check", "--config", file);
    return err
      .replaceAll(folder.pathOf(""), "")
      .split("\n")
      .filter((line) => line.includes("max_age"));
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

  test("because sessions are as old as the walk that read them", async () => {
    const size = { nodes: 100, nodePages: 1, sessions: 300_000, sessionPages: 300 };
    const warnings = await ageWarnings("sessions.error > 5", "70s", { limits: { plan: "enterprise" } }, size);
    expect(warnings).toEqual([expect.stringMatching(where)]);
    expect(warnings[0]).toMatch(
      /sessions are read every 1m \(collect\.sessions\), and are \S+ old at the end of the next walk: sessions\.error will/,
    );
  });
});

test("check warns that a cron schedule never runs if the monthly limit leaves no calls for polling", async () => {
  const folder = createTempFolder();
  const config = {
    service: { base_url: "https://proxy.internal", api_key: "sesame", usage_scale: "ratio" },
    state: { path: folder.pathOf("state") },
    limits: { plan: { calls_per_month: 1 } },
    collect: { nodes: { cron: "*/5 * * * *" } },
  };
  const file = folder.write("proxywarden.yaml", JSON.stringify(config));
  const { err } = await runInProcess("check", "--config", file);
  expect(err).toContain(
    "collect.nodes.cron: runs every 5m, which the plan's calls per month don't allow: all runs are skipped\n",
  );
});
