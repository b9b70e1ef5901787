import { expect, test } from "vitest";
import { fail, ok } from "../../src/base/result.ts";
import type { CommandRejection, CommandReply } from "../../src/model/remediation/operator-command.ts";
import { startDaemonOnNetwork } from "../integration/simulated-network.ts";
import { waitUntil } from "../integration/wait-until.ts";
import { recordingCommands } from "../web/api/remediation-view-fixture.ts";
import { adminOperators } from "../web/http/test-server.ts";
import { nodeName, OUTAGE, pendingApproval, startWithApproval } from "./harness/approval-daemon.ts";
import { openDaemon, openPage, useBrowser } from "./harness/page-visit.ts";

const TOKEN = "open-sesame";

useBrowser();

test("commands need a valid token, which is kept for the tab", async () => {
  const { setup, daemon, page, pageErrors } = await startWithApproval();
  const paused = async () => (await daemon.scrape()).sum("proxywarden_paused") === 1;
  await page.locator("#pause button:enabled").click();
  await page.getByLabel("Reason").fill("a deploy");
  await page.getByLabel("Duration (optional").fill("2h");
  await page.locator("dialog .primary").click();
  await page.getByText("An operator token is required.").waitFor();
  await page.getByLabel("Operator token").fill("guessed");
  await page.locator("dialog .primary").click();
  await page.getByText("Failed: the token does not belong to an operator.").waitFor();
  expect(await paused()).toBe(false);
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page.locator("#banners").getByText("a deploy").waitFor();
  expect(await paused()).toBe(true);
  expect(await page.locator("#banners").innerText()).toContain("until");
  // The stored token is used: the dialog only asks for confirmation.
  await page.locator("#banners button").click();
  await page.locator("dialog .primary").click();
  await waitUntil("actions are resumed", async () => !(await paused()));

  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, OUTAGE);
  await pendingApproval(daemon, node!);
  expect(setup.serviceProxy.postRequests).toEqual([]);
  await page.locator("#approvals").getByRole("button", { name: "Approve" }).waitFor();
  // The panel of the node shows the same request, and its buttons do the same.
  await page.locator("#attention a").click();
  await page.locator("#panel .approval").getByText("expires in").waitFor();
  await page.locator("#panel").getByRole("button", { name: "Approve" }).click();
  await page.locator("dialog .primary").click();
  // The message names the node, not its id.
  await page
    .locator("#toast")
    .getByText(`is approved: the reboot of ${nodeName(setup, node!)} is sent`)
    .waitFor();
  await page.locator("#activity").getByText("verified", { exact: true }).waitFor();
  await page.locator("#activity").getByText("approved by admin").waitFor();
  const commands = page.locator("#activity > li").filter({ hasText: "by admin" });
  expect((await commands.locator(".badge").allTextContents()).filter((badge) => badge !== "verified")).toEqual([
    ...["approve", "resume", "pause"],
  ]);
  expect(await commands.last().innerText()).toContain("a deploy");
  expect(setup.serviceProxy.postRequests.map(({ path }) => path)).toEqual([`/v1/nodes/${node}/reboot`]);
  const stores = await page.evaluate<string[]>(
    "[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]",
  );
  expect(stores.map((store) => store.includes(TOKEN))).toEqual([true, false, false]);
  await page.locator("#forget").click();
  expect(await page.evaluate<string>("JSON.stringify(sessionStorage)")).not.toContain(TOKEN);
  expect(pageErrors).toEqual([]);
});

test("the panel of a node withdraws an approval that was given by mistake", async () => {
  const { setup, daemon, page, pageErrors } = await startWithApproval();
  const [node] = setup.nodes;
  setup.interventions.startFailure(node!, OUTAGE);
  const { id } = await pendingApproval(daemon, node!);
  for (const path of ["pause", `actions/${id}/approve`]) {
    const headers = { authorization: `Bearer ${TOKEN}` };
    await fetch(`${daemon.app.url()}/api/v1/${path}`, { method: "POST", headers });
  }
  await page.locator("#attention a").first().click();
  const panel = page.locator("#panel .approval");
  await panel.getByText("is approved, and is sent as soon as nothing else holds the node").waitFor();
  expect(await panel.getByRole("button").allTextContents()).toEqual(["Reject"]);
  await panel.getByRole("button", { name: "Reject" }).click();
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page
    .locator("#toast")
    .getByText(`${id}, reboot of ${nodeName(setup, node!)}, is rejected`)
    .waitFor();
  await panel.waitFor({ state: "detached" });
  expect(setup.serviceProxy.postRequests).toEqual([]);
  expect(pageErrors).toEqual([]);
});

test("without operators the page is read-only", async () => {
  const { daemon } = await startDaemonOnNetwork({ scenario: { nodes: 20, sessions: 10 } });
  const { page, pageErrors } = await openPage(daemon.app.url());
  await page.getByText("Read-only: no operators are configured").waitFor();
  expect(await page.locator("#pause button").isDisabled()).toBe(true);
  expect(pageErrors).toEqual([]);
});

const operators = () => adminOperators({ value: () => TOKEN, refresh: () => ok(false) });

/** Opens the page of a daemon that executes no command. */
const openWithRejection = (rejection: CommandRejection) =>
  openDaemon({ operators, execute: recordingCommands([], rejection) });

const conflict = { kind: "conflict", message: "the breaker is not open" } as const;

test("a stored token that is no longer valid can be replaced, also after too many wrong ones", async () => {
  const { page } = await openWithRejection(conflict);
  await page.evaluate(`sessionStorage.setItem("proxywarden.token", "an old one")`);
  for (let attempt = 0; attempt < 10; attempt++) {
    const headers = { authorization: `Bearer guessed-${attempt}` };
    await page.request.post(`${new URL(page.url()).origin}/api/v1/pause`, { headers });
  }
  await page.locator("#pause button:enabled").click();
  expect(await page.getByLabel("Operator token").isVisible()).toBe(false);
  await page.locator("dialog .primary").click();
  await page.getByText("Failed: too many wrong tokens").waitFor();
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page.getByText("Failed: the breaker is not open.").waitFor();
  // The token was valid, although the command was rejected.
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator("#pause button").click();
  expect(await page.getByLabel("Operator token").isVisible()).toBe(false);
  await page.locator("dialog .primary").click();
  await page.getByText("Failed: the breaker is not open.").waitFor();
});

test("a token that can't be sent is not reported as a command without a response", async () => {
  const { page } = await openWithRejection(conflict);
  await page.locator("#pause button:enabled").click();
  await page.getByLabel("Operator token").fill(`${TOKEN}\u201d`);
  await page.locator("dialog .primary").click();
  await page.getByText("Failed: the token has a character that can't be sent.").waitFor();
});

test("a command to which the leader has not replied is not shown as executed", async () => {
  const { page } = await openWithRejection({ kind: "unanswered", message: "the leader has not replied yet" });
  await page.locator("#pause button:enabled").click();
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page.locator("dialog .problem").getByText("Not confirmed: the leader has not replied yet.").waitFor();
});

test("the reply to a command has local times, and one that is lost is not shown as failed", async () => {
  const execute = async () => ok("no action is taken until 2026-11-21 05:00:00 UTC or resume");
  const { page } = await openDaemon({ operators, execute });
  await page.locator("#pause button:enabled").click();
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page.locator("#toast").getByText("no action is taken until 21 Nov 05:00:00 or resume").waitFor();
  await page.route("**/api/v1/pause", (route) => route.abort());
  await page.locator("#pause button:enabled").click();
  await page.locator("dialog .primary").click();
  const advice = "The command may have been executed. Check before you send it again.";
  await page.locator("dialog .problem").getByText(`Not confirmed: the daemon does not respond. ${advice}`).waitFor();
});

test("a command that waits for its response can't be sent twice, and leaves the dialog of another one open", async () => {
  const reply = Promise.withResolvers<ReturnType<typeof ok<string>>>();
  const sent: string[][] = [];
  const execute = recordingCommands(sent);
  const { page } = await openDaemon({
    operators,
    async execute(command) {
      const done = await execute(command);
      return command.command === "pause" ? reply.promise : done;
    },
  });
  const pause = page.locator("#pause button:enabled");
  const send = page.locator("dialog .primary");
  await pause.click();
  await page.getByLabel("Operator token").fill(TOKEN);
  await send.click();
  await page.locator("dialog .primary:disabled").waitFor();
  await page.route("**/api/v1/status", (route) => route.abort());
  await page.locator("#connection").getByText("disconnected").waitFor();
  await page.unroute("**/api/v1/status");
  await page.locator("#connection").getByText("live", { exact: true }).waitFor();
  expect(await send.isDisabled()).toBe(true);

  await page.getByRole("button", { name: "Cancel" }).click();
  await pause.click();
  await page.getByLabel("Reason").fill("another one");
  reply.resolve(ok("pause is done"));
  await page.locator("#toast").getByText("pause is done").waitFor();
  expect(await page.getByLabel("Reason").inputValue()).toBe("another one");
  expect(await send.isEnabled()).toBe(true);
  expect(sent).toHaveLength(1);
});

test("a command that fails after its dialog was closed is reported", async () => {
  const reply = Promise.withResolvers<CommandReply>();
  const { page } = await openDaemon({ operators, execute: () => reply.promise });
  await page.locator("#pause button:enabled").click();
  await page.getByLabel("Operator token").fill(TOKEN);
  await page.locator("dialog .primary").click();
  await page.locator("dialog .primary:disabled").waitFor();
  await page.keyboard.press("Escape");
  reply.resolve(fail(conflict));
  await page.locator("#toast").getByText("Pause failed: the breaker is not open.").waitFor();
});
