import { expect, onTestFinished, test } from "vitest";
import { runDemo } from "../../../src/cli/demo.ts";
import { waitUntil } from "../wait-until.ts";

test("demo prints decisions, actions and their outcomes as they happen, and ends with a report", async () => {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const texts = { out: "", err: "" };
  const into = (stream: keyof typeof texts) => ({
    write(text: string) {
      texts[stream] += text;
    },
  });
  const ended = runDemo(
    { nodes: 300, sessions: 300, seed: 1, speed: 60, port: 0 },
    { env: {}, out: into("out"), err: into("err"), stop: stop.signal, onSighup() {}, version: "0.0.0-test" },
  );
  const line = (pattern: string) => new RegExp(`^\\d\\d:\\d\\d:\\d\\d  ${pattern}$`, "m");
  const lines = [
    line(String.raw`offline: acts on [a-z]{3}-\d{4} \(node_\w+\): node\.status offline`),
    line(String.raw`offline: reboot of [a-z]{3}-\d{4} \(act-\d+\): sent`),
    line(String.raw`\S+: holds [a-z]{3}-\d{4} \(node_\w+\)(?: \(dry run\))?: [a-z_]+ \(.+\)`),
    line(String.raw`\S+: (?:forced )?reboot of [a-z]{3}-\d{4} \(act-\d+\): verified after \S+, proof: uptime_fell`),
    line(String.raw`300 nodes: \d+ online.*`),
  ];
  await waitUntil(
    () =>
      `all kinds of lines are printed; missing: ${lines.filter((each) => !each.test(texts.out)).join("\n")}\nprinted:\n${texts.out}`,
    () => lines.every((line) => line.test(texts.out)),
  );
  stop.abort();
  await ended;
  expect(texts.err).toBe("");
  expect(texts.out).toMatch(/\nactions, by policy, kind and outcome\n(?: +\d+ {2}\S+ {2}\S+ {2}\S+\n)+/);
  expect(texts.out).toMatch(/^ +[1-9]\d* {2}POST \/v1\/nodes\/\{id\}\/reboot {2}200$/m);
  expect(texts.out).toMatch(/^ +0 {2}answered 429$/m);
});
