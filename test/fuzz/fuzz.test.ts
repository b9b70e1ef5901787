import { describe, expect, test } from "vitest";
import { type CampaignOptions, runCampaign } from "./campaign.ts";
import { TARGETS } from "./targets.ts";

const SEED = 7;
/** Cases of all targets together: some seconds. */
const CASES = 3_000;
const MILLION = 1_000_000;

test("the shares of the targets are a million together", () => {
  expect(TARGETS.reduce((sum, { perMillion }) => sum + perMillion, 0)).toBe(MILLION);
});

describe("no input makes a reader throw, hang or leak:", () => {
  test.each(TARGETS)("$name", async ({ name, module, perMillion }) => {
    const to = Math.ceil((CASES * perMillion) / MILLION);
    const result = await runCampaign({ name, module, seed: SEED, from: 0, to });
    expect(result).toMatchObject({ cases: to, failures: [] });
  });
});

describe("a campaign reports", () => {
  /** The only case below {@link LAST} of the seed in which the fault of the faulty target shows. */
  const FAULTY = { seed: 2, number: 47 };
  const LAST = 60;
  const campaign = (
    fault: string,
    from: number,
    to: number,
    limits: Pick<CampaignOptions, "hangMs" | "slowMs"> = {},
  ) => {
    const module = new URL(`./faulty-target.ts?fault=${fault}`, import.meta.url).href;
    return runCampaign({ ...{ name: "faulty", module, from, to }, seed: FAULTY.seed, ...limits });
  };

  test.each([
    ["exception", {}, /the reader broke/],
    ["unhandled", {}, /nothing handles this/],
    ["slow", { slowMs: 50 }, /it took \d+ ms/],
    ["hang", { hangMs: 3_000 }, /it is not over after \d+ ms/],
  ])(
    "a case with the fault %s by its seed, its number and its input, and runs the others",
    async (kind, limits, detail) => {
      const { cases, failures } = await campaign(kind, 0, LAST, limits);
      expect(cases).toBe(LAST);
      const found = {
        ...FAULTY,
        target: "faulty",
        kind,
        input: "true",
        times: 1,
        detail: expect.stringMatching(detail),
      };
      expect(failures).toEqual([found]);
    },
  );

  test("the same failure where its case is run alone", async () => {
    const alone = await campaign("exception", FAULTY.number, FAULTY.number + 1);
    const found = {
      ...FAULTY,
      kind: "exception",
      input: "true",
      detail: expect.stringMatching(/^Error: the reader broke/),
    };
    expect(alone.failures).toMatchObject([found]);
  });

  test("a target that keeps memory", async () => {
    expect((await campaign("leak", 0, 6_000)).failures).toEqual([expect.objectContaining({ kind: "memory" })]);
  });

  test("nothing of a target without a fault", async () => {
    expect(await campaign("none", 0, LAST)).toMatchObject({ cases: LAST, failures: [] });
  });
});
