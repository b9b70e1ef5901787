import { describe, expect, test } from "vitest";
import { type CampaignOptions, runCampaign } from "./campaign.ts";
import { TARGETS } from "./targets.ts";

const SEED = 7;
/** Cases of all targets together, for a run of some seconds. */
const CASES = 150;
const MILLION = 1_000_000;

test("the shares of the targets add up to a million", () => {
  expect(TARGETS.reduce((sum, { perMillion }) => sum + perMillion, 0)).toBe(MILLION);
});

describe("no input causes an exception, a hang or a leak:", () => {
  test.each(TARGETS)("$name", async ({ name, module, perMillion }) => {
    const to = Math.ceil((CASES * perMillion) / MILLION);
    const result = await runCampaign({ name, module, seed: SEED, from: 0, to });
    expect(result).toMatchObject({ cases: to, failures: [] });
  });
});

describe("a campaign reports", () => {
  /** The only case below CASES_END of the seed in which the defect of the faulty target occurs. */
  const FAULTY = { seed: 2, number: 47 };
  const CASES_END = 60;
  const campaign = (
    fault: string,
    from: number,
    to: number,
    limits: Pick<CampaignOptions, "hangMs" | "slowMs"> = {},
  ) => {
    const module = new URL(`./targets/faulty-target.ts?fault=${fault}`, import.meta.url).href;
    return runCampaign({ name: "faulty", module, from, to, seed: FAULTY.seed, ...limits });
  };

  test.each([
    ["exception", {}, /the reader failed/],
    ["unhandled", {}, /not handled/],
    ["slow", { slowMs: 50 }, /the case took \d+ ms/],
    ["hang", { hangMs: 500 }, /the case did not end within \d+ ms/],
  ])("a case that fails with %s by seed, number and input, and runs the other cases", async (kind, limits, detail) => {
    const { cases, failures } = await campaign(kind, 0, CASES_END, limits);
    expect(cases).toBe(CASES_END);
    const failure = {
      ...FAULTY,
      target: "faulty",
      kind,
      input: "true",
      times: 1,
      detail: expect.stringMatching(detail),
    };
    expect(failures).toEqual([failure]);
  });

  test("the same failure if the case is run alone", async () => {
    const { failures } = await campaign("exception", FAULTY.number, FAULTY.number + 1);
    const detail = expect.stringMatching(/^Error: the reader failed/);
    expect(failures).toMatchObject([{ ...FAULTY, kind: "exception", input: "true", detail }]);
  });

  test("a target that leaks memory", async () => {
    expect((await campaign("leak", 0, 6_000)).failures).toEqual([expect.objectContaining({ kind: "memory" })]);
  });
});
