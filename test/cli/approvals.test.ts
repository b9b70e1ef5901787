import { expect, test } from "vitest";
import { runApprovals } from "../../src/cli/approvals.ts";
import type { RemediationView } from "../../src/remediation/status/views.ts";
import { idleRemediation, sampleApproved, sampleRemediation } from "../web/api/remediation-view-fixture.ts";
import { startTestServer } from "../web/http/test-server.ts";
import { captureOutput } from "./terminal.ts";

test("approvals lists the waiting actions and the approved ones that are not sent yet, with their time and evidence", async () => {
  const { url } = await startTestServer({ remediation: () => sampleRemediation() });
  expect(await captureOutput((context) => runApprovals({ url, output: "text" }, context))).toEqual({
    code: 0,
    err: "",
    out: `act-3  quarantine for 1d node_1 (DE, eu-west)
    by reboot-offline, step 3 of ep-1, waiting since 2026-11-21 03:30:00 UTC until 2026-11-21 07:30:00 UTC
    based on data observed 2026-11-21 03:00:00 UTC:
      node.status = offline
      node.last_seen = 20m old

act-4  reboot node_2 (DE, eu-west)
    by reboot-offline, step 3 of ep-1, approved by alice 2026-11-21 03:35:00 UTC, valid until 2026-11-21 07:35:00 UTC
    based on data observed 2026-11-21 03:00:00 UTC:
      node.status = offline
      node.last_seen = 20m old

npm start -- approve act-3, or reject. An action also expires when its evidence no longer holds.
`,
  });
});

test("approvals says how to withdraw an approval if no action is waiting for one", async () => {
  const approvals: RemediationView["approvals"] = (state) => (state === "approved" ? [sampleApproved] : []);
  const { url } = await startTestServer({ remediation: () => ({ ...idleRemediation, approvals }) });
  const { out } = await captureOutput((context) => runApprovals({ url, output: "text" }, context));
  expect(out.trimEnd().split("\n").at(-1)).toBe(
    "npm start -- reject act-4 withdraws the approval; npm start -- explain node_2 shows what holds it. An action also expires when its evidence no longer holds.",
  );
});

test("approvals reports that no action is waiting", async () => {
  const { url } = await startTestServer();
  const end = await captureOutput((context) => runApprovals({ url, output: "text" }, context));
  expect(end).toEqual({
    code: 0,
    out: "no actions are waiting to be approved or sent\n",
    err: "",
  });
});

test("approvals --output json prints the rows of the API", async () => {
  const { url } = await startTestServer({ remediation: () => sampleRemediation() });
  const { code, out } = await captureOutput((context) => runApprovals({ url, output: "json" }, context));
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject([
    { id: "act-3", state: "awaiting", request: { kind: "quarantine", duration_minutes: 1_440 } },
    { id: "act-4", state: "approved", operator: "alice" },
  ]);
});

test("approvals says that there may be more actions than it reads", async () => {
  const many = Array.from({ length: 1_001 }, (_, index) => ({ ...sampleApproved, id: `act-${index}` }));
  const { url } = await startTestServer({
    remediation: () => ({ ...idleRemediation, approvals: (state) => (state === "approved" ? many : []) }),
  });
  const { out, err } = await captureOutput((context) => runApprovals({ url, output: "json" }, context));
  expect(JSON.parse(out)).toHaveLength(1_000);
  expect(err).toBe("proxywarden: only the first 1000 actions that are approved were read\n");
});

test("approvals lists an action that is approved between its two requests once", async () => {
  const { url } = await startTestServer({
    remediation: () => ({
      ...idleRemediation,
      approvals: (state) => [state === "approved" ? sampleApproved : { ...sampleApproved, state: "awaiting" }],
    }),
  });
  const { out } = await captureOutput((context) => runApprovals({ url, output: "json" }, context));
  expect(JSON.parse(out)).toMatchObject([{ id: "act-4", state: "approved" }]);
});

test("approvals replaces control characters in node names", async () => {
  const odd = { ...sampleApproved, node: "node\u001b[31m\r\u202e" };
  const { url } = await startTestServer({
    remediation: () => ({ ...idleRemediation, approvals: (state) => (state === "approved" ? [odd] : []) }),
  });
  const { out } = await captureOutput((context) => runApprovals({ url, output: "text" }, context));
  expect(out).toContain("node\u{fffd}[31m\u{fffd}\u{fffd} (DE");
  expect(out.replaceAll("\n", "")).not.toMatch(/\p{Cc}|\p{Cf}/u);
});

test("approvals exits with 1 if no daemon is reachable", async () => {
  const end = await captureOutput((context) => runApprovals({ url: "http://127.0.0.1:1", output: "text" }, context));
  expect(end).toMatchObject({ code: 1, out: "", err: expect.stringContaining("ECONNREFUSED") });
});
