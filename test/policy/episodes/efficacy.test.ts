import { describe, expect, test } from "vitest";
import type { Episode, EpisodeState } from "../../../src/model/remediation/episode.ts";
import { measureEfficacy } from "../../../src/policy/episodes/attempts.ts";
import { closedEpisodeOf } from "../../journal/arbitrary-changes.ts";

const POLICY = { policy: "reboot-offline", fingerprint: "as it was", since: 0 };

/** Episodes in the order in which they closed, each by how it ended. */
const closedEpisodes = (states: readonly EpisodeState[], more: Partial<Episode> = {}): Episode[] =>
  states.map((state, index) =>
    closedEpisodeOf(index + 1, 100 + index, { state, acted: 1, node: `node_${index}`, ...more }),
  );

const efficacyOfEpisodes = (episodes: Iterable<Episode>, window = 4, minSuccess = 0.5) =>
  measureEfficacy(episodes, POLICY, { window, minSuccess });

describe("the efficacy of a policy", () => {
  test("is too low below min_success", () => {
    expect(efficacyOfEpisodes(closedEpisodes(["healed", "given_up", "given_up", "given_up"]))).toEqual({
      nodes: 4,
      healed: 1,
      isTooLow: true,
    });
    expect(efficacyOfEpisodes(closedEpisodes(["healed", "given_up", "healed", "cleared"]))).toEqual({
      nodes: 4,
      healed: 2,
      isTooLow: false,
    });
    const ten = [...Array<EpisodeState>(7).fill("healed"), ...Array<EpisodeState>(3).fill("given_up")];
    expect(efficacyOfEpisodes(closedEpisodes(ten), 10, 0.7).isTooLow).toBe(false);
    expect(efficacyOfEpisodes(closedEpisodes(ten), 10, 0.71).isTooLow).toBe(true);
    const twenty = [...Array<EpisodeState>(11).fill("healed"), ...Array<EpisodeState>(9).fill("given_up")];
    expect(efficacyOfEpisodes(closedEpisodes(twenty), 20, 0.55).isTooLow).toBe(false);
  });

  test("is not too low before its window is full", () => {
    expect(efficacyOfEpisodes(closedEpisodes(["given_up", "given_up", "given_up"]))).toEqual({
      nodes: 3,
      healed: 0,
      isTooLow: false,
    });
    expect(efficacyOfEpisodes([], 0)).toMatchObject({ isTooLow: false });
    expect(efficacyOfEpisodes(closedEpisodes(["given_up", "given_up"]), 0)).toMatchObject({ isTooLow: false });
  });

  test("uses the episodes that closed last, in any order", () => {
    const all = closedEpisodes(["healed", "healed", "healed", "given_up", "given_up", "given_up", "healed"]);
    expect(efficacyOfEpisodes(all)).toMatchObject({ nodes: 4, healed: 1, isTooLow: true });
    expect(efficacyOfEpisodes(all.toReversed())).toMatchObject({ nodes: 4, healed: 1, isTooLow: true });
  });

  test("ignores episodes without an action and those that an operator or a change ended", () => {
    const bad = closedEpisodes(["given_up", "given_up", "given_up"]);
    const others: Partial<Episode>[] = [
      { acted: 0 },
      { state: "freed" },
      { state: "withdrawn" },
      { repaired: true },
      { dryRun: true },
      { fingerprint: "as it is now" },
      { policy: "another" },
    ];
    const otherOf = (more: Partial<Episode>) =>
      closedEpisodeOf(9, 200, { state: "given_up", acted: 1, node: "node_9", ...more });
    expect(efficacyOfEpisodes([...bad, otherOf({})])).toEqual({ nodes: 4, healed: 0, isTooLow: true });
    for (const more of others)
      expect(efficacyOfEpisodes([...bad, otherOf(more)])).toEqual({ nodes: 3, healed: 0, isTooLow: false });
  });

  test("counts a node that recovered without a step as not healed", () => {
    expect(efficacyOfEpisodes(closedEpisodes(["cleared", "cleared", "cleared", "healed"]))).toMatchObject({
      healed: 1,
      isTooLow: true,
    });
  });

  test("counts a lost node as not healed from the time of its loss", () => {
    const lost = { state: "suspended", closedAt: null, stateAt: 200, healed: false } as const;
    const all = [
      ...closedEpisodes(["healed", "given_up", "given_up"]),
      ...closedEpisodes(["suspended"], { ...lost, node: "node_9" }),
    ];
    expect(efficacyOfEpisodes(all)).toEqual({ nodes: 4, healed: 1, isTooLow: true });
    expect(measureEfficacy(all, { ...POLICY, since: 199 }, { window: 1, minSuccess: 0.5 })).toMatchObject({ nodes: 1 });
    expect(measureEfficacy(all, { ...POLICY, since: 200 }, { window: 1, minSuccess: 0.5 })).toMatchObject({ nodes: 0 });
  });

  test("uses the nodes that were treated last", () => {
    const [first, second] = closedEpisodes(["given_up", "given_up"]);
    const again = closedEpisodeOf(9, 200, { state: "healed", acted: 1, node: first!.node });
    expect(efficacyOfEpisodes([first!, second!, again], 1)).toEqual({ nodes: 1, healed: 1, isTooLow: false });
  });

  test("counts each node once, by its last episode", () => {
    const sixOfTwo = Array.from(
      { length: 6 },
      (_, index) => closedEpisodes(["given_up"], { node: `node_${index % 2}` })[0]!,
    );
    expect(efficacyOfEpisodes(sixOfTwo)).toEqual({ nodes: 2, healed: 0, isTooLow: false });
    const [first, ...others] = closedEpisodes(["given_up", "given_up", "given_up", "given_up"]);
    const again = closedEpisodeOf(9, 200, { state: "healed", acted: 1, node: first!.node });
    expect(efficacyOfEpisodes([first!, ...others, again])).toEqual({ nodes: 4, healed: 1, isTooLow: true });
  });

  test("starts over when an operator resets it", () => {
    const all = closedEpisodes(["given_up", "given_up", "given_up", "given_up"]);
    expect(measureEfficacy(all, { ...POLICY, since: 100 }, { window: 4, minSuccess: 0.5 })).toMatchObject({ nodes: 3 });
  });

  test("with min_success 0% is never too low", () => {
    expect(efficacyOfEpisodes(closedEpisodes(["given_up", "given_up", "given_up", "given_up"]), 4, 0).isTooLow).toBe(
      false,
    );
  });
});
