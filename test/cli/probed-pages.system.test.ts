import { createServer } from "node:http";
import { describe, expect, test } from "vitest";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { listenInTest } from "../harness/servers/listening-server.ts";
import { probe } from "./probed-service.ts";

describe("what check --probe finds about pages", () => {
  test.each([
    [0, "list", "0: page 0 has nodes that page 1 does not have"],
    [0, "page", "0: page 0 has nodes that page 1 does not have"],
    [1, "list", "1: page 0 is rejected with a 4xx"],
  ] as const)(
    "the first page is %i, and the total counts the records of the %s",
    async (firstPage, totalCounts, text) => {
      const nodeList = { ...defaultScenario.service.nodeList, totalCounts };
      const { findings } = await probe({ options: { firstPage, nodeList } });
      expect(findings.first_page).toMatchObject({ value: firstPage, certain: true, text });
    },
  );

  test.each(["empty", "not_found"] as const)("a short list may begin on page 0: %s", async (pagesAfterEnd) => {
    const { findings } = await probe({
      options: { firstPage: 0, pagesAfterEnd },
      scenario: { nodes: 30, sessions: 20 },
    });
    expect(findings.scopes!.text).toMatch(/^nodes:read, sessions:read; /);
    expect(findings.first_page).toMatchObject({ value: 0, certain: true });
    expect(findings.usage_scale).toMatchObject({ value: "ratio" });
  });

  test.each([20, 30, 60, 100])(
    "400 to a page after the end does not make the page size smaller: %i nodes",
    async (nodes) => {
      const { findings, calls } = await probe({
        options: { firstPage: 0, pagesAfterEnd: "rejected" },
        scenario: { nodes, sessions: 20 },
      });
      expect(findings.first_page).toMatchObject({ value: 0, certain: true });
      expect(findings.page_limit!.text).not.toContain("rejected");
      expect(calls.at(-1)).toMatchObject({ path: "/v1/sessions?page=0&limit=100", status: 200 });
    },
  );

  test("a service that answers 400 to a page after the end rejects the page, not its size", async () => {
    const data = [{ id: "node_1", status: "online" }];
    const server = createServer(({ url = "" }, response) => {
      const { searchParams } = new URL(url, "http://service");
      response.statusCode = searchParams.get("page") === "1" ? 400 : 200;
      const limit = Number(searchParams.get("limit"));
      response.end(JSON.stringify({ data, pagination: { page: 0, limit, total: data.length } }));
    });
    const base_url = `http://127.0.0.1:${await listenInTest(server)}`;
    const { findings } = await probe({ service: { base_url } });
    expect(findings.first_page).toMatchObject({ value: 0, certain: true });
    expect(findings.page_limit!.text).toBe("1 node, and a page may have 100, so the largest page can't be determined");
  });

  test("a service that answers page 0 with page 1 counts from 1, even if it answered 400 to a call", async () => {
    const nodes = Array.from({ length: 60 }, (_, n) => ({ id: `node_${n}`, status: "online" }));
    let calls = 0;
    const server = createServer(({ url = "" }, response) => {
      response.statusCode = calls++ === 0 ? 400 : 200;
      const { searchParams } = new URL(url, "http://service");
      const limit = Number(searchParams.get("limit"));
      const page = Math.max(1, Number(searchParams.get("page")));
      const data = nodes.slice((page - 1) * limit, page * limit);
      response.end(JSON.stringify({ data, pagination: { page, limit, total: nodes.length } }));
    });
    const base_url = `http://127.0.0.1:${await listenInTest(server)}`;
    const { findings } = await probe({ service: { base_url } });
    expect(findings.first_page).toMatchObject({ value: 1, certain: true, text: "1: page 0 is answered with page 1" });
  });

  test("the first page is 1 if it has all nodes, without another call", async () => {
    const { findings, calls } = await probe({ scenario: { nodes: 30 } });
    expect(findings.first_page).toMatchObject({ value: 1, certain: true, text: "1: page 1 has all nodes" });
    expect(calls).toHaveLength(5);
  });

  test("can't be determined if the service ignores the page number", async () => {
    const { findings, calls } = await probe({
      options: { firstPage: 0 },
      fault: { kind: "page_ignored", states: "requested" },
    });
    expect(findings.first_page!.text).toBe("can't be determined: every page number returns the same nodes");
    expect(calls).toHaveLength(7);
  });

  test("a clamp of the page size is found", async () => {
    const { findings } = await probe({ options: { pageLimitMax: 50 } });
    expect(findings.page_limit).toMatchObject({
      value: 50,
      certain: true,
      text: "50: 100 were requested, and the service returns fewer",
    });
  });

  test("a rejected page size is replaced by a smaller one", async () => {
    const { findings, calls } = await probe({ options: { pageLimitMax: 60, pageLimitOver: "reject" } });
    expect(findings.page_limit).toMatchObject({
      value: 50,
      certain: true,
      text: "a limit of 100 is rejected with a 4xx; 50, as requested",
    });
    expect(calls.slice(0, 2).map(({ status }) => status)).toEqual([400, 200]);
  });
});
