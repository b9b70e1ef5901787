import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { hashSync } from "bcryptjs";
import { expect, onTestFinished, test } from "vitest";
import { createBcryptMatches } from "../../../../src/web/http/auth/bcrypt.ts";
import { basic, sendHttpRequest, startServerWithFiles } from "../secured-server.ts";

const PASSWORD = "correct: horse – battery";
const hash = hashSync(PASSWORD, 4);

test("a comparison does not block the event loop", async () => {
  const bcryptMatches = createBcryptMatches();
  let turns = 0;
  let isOver = false;
  const checked = bcryptMatches(PASSWORD, hashSync(PASSWORD, 8)).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    turns++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await checked).toBe(true);
  expect(turns).toBeGreaterThan(50);
});

test("comparisons run in one thread, which all servers share", async () => {
  const files = { "web.yml": JSON.stringify({ basic_auth_users: { ann: hash } }) };
  let threads = 0;
  const count = () => {
    threads++;
  };
  subscribe("worker_threads", count);
  onTestFinished(() => void unsubscribe("worker_threads", count));
  for (let time = 0; time < 3; time++) {
    const { web } = await startServerWithFiles(files);
    expect((await sendHttpRequest(web, "/metrics", { headers: basic("ann", PASSWORD) })).status).toBe(200);
    await web.close(0);
  }
  expect(threads).toBeLessThan(2);
});

test("several comparisons run one after the other", async () => {
  const bcryptMatches = createBcryptMatches();
  const given = [PASSWORD, "x", PASSWORD, "y"];
  expect(await Promise.all(given.map((password) => bcryptMatches(password, hash)))).toEqual([true, false, true, false]);
});
