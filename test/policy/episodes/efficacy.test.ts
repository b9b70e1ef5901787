import { describe, expect, test } from "vitest";
import type { Episode, EpisodeState } from "../../../src/model/remediation/episode.ts";
import { efficacyOf } from "../../../src/policy/episodes/efficacy.ts";
import { closedEpisodeOf } from "../../journal/arbitrary-changes.ts";

const POLICY = { policy: "reboot-offline", fingerprint: "as it was", since: 0 };

/** Episodes in the order in which they closed, each by how it ended. */
const ended = (states: readonly EpisodeState[], more: Partial<Episode> = {}): Episode[] =>
  states.map((state, index) =>
    closedEpisodeOf(index + 1, 100 + index, { state, acted: 1, node: `node_${index}`, ...more }),
  );

const of = (episodes: Iterable<Episode>, window = 4, minSuccess = 0.5) =>
  efficacyOf(episodes, POLICY, { window, minSuccess });

describe("the efficacy of a policy", () => {
  test("is poor below its share, and the share itself is enough", () => {
    expect(of(ended(["healed", "given_up", "given_up", "given_up"]))).toEqual({
      nodes: 4,
      healed: 1,
      isPoor: true,
    });
    expect(of(ended(["healed", "given_up", "healed", "cleared"]))).toEqual({ nodes: 4, healed: 2, isPoor: false });
    const ten = [...Array<EpisodeState>(7).fill("healed"), ...Array<EpisodeState>(3).fill("given_up")];
    expect(of(ended(ten), 10, 0.7).isPoor).toBe(false);
    expect(of(ended(ten), 10, 0.71).isPoor).toBe(true);
    const twenty = [...Array<EpisodeState>(11).fill("healed"), ...Array<EpisodeState>(9).fill("given_up")];
    expect(of(ended(twenty), 20, 0.55).isPoor).toBe(false);
  });

  test("is not judged before its window is full", () => {
    expect(of(ended(["given_up", "given_up", "given_up"]))).toEqual({ nodes: 3, healed: 0, isPoor: false });
    expect(of([], 0)).toMatchObject({ isPoor: false });
    expect(of(ended(["given_up", "given_up"]), 0)).toMatchObject({ isPoor: false });
  });

  test("goes by the last episodes to close, in whatever order they come", () => {
    const all = ended(["healed", "healed", "healed", "given_up", "given_up", "given_up", "healed"]);
    expect(of(all)).toMatchObject({ nodes: 4, healed: 1, isPoor: true });
    expect(of(all.toReversed())).toMatchObject({ nodes: 4, healed: 1, isPoor: true });
  });

  test("says nothing by episodes in which nothing was done, or that did not end by themselves", () => {
    const bad = ended(["given_up", "given_up", "given_up"]);
    const others: Partial<Episode>[] = [
      { acted: 0 },
      { state: "freed" },
      { state: "withdrawn" },
      { repaired: true },
      { shadow: true },
      { fingerprint: "as it is now" },
      { policy: "another" },
    ];
    const otherOf = (more: Partial<Episode>) =>
      closedEpisodeOf(9, 200, { state: "given_up", acted: 1, node: "node_9", ...more });
    expect(of([...bad, otherOf({})])).toEqual({ nodes: 4, healed: 0, isPoor: true });
    for (const more of others) expect(of([...bad, otherOf(more)])).toEqual({ nodes: 3, healed: 0, isPoor: false });
  });

  test("counts what passed by itself after a step as not healed", () => {
    expect(of(ended(["cleared", "cleared", "cleared", "healed"]))).toMatchObject({ healed: 1, isPoor: true });
  });

  test("counts a node that is lost after an action, from when it was lost, as not healed", () => {
    const lost = { state: "suspended", closedAt: null, stateAt: 200, healed: false } as const;
    const all = [...ended(["healed", "given_up", "given_up"]), ...ended(["suspended"], { ...lost, node: "node_9" })];
    expect(of(all)).toEqual({ nodes: 4, healed: 1, isPoor: true });
    expect(efficacyOf(all, { ...POLICY, since: 199 }, { window: 1, minSuccess: 0.5 })).toMatchObject({ nodes: 1 });
    expect(efficacyOf(all, { ...POLICY, since: 200 }, { window: 1, minSuccess: 0.5 })).toMatchObject({ nodes: 0 });
  });

  test("goes by the nodes that were treated last, also where one was treated before", () => {
    const [first, second] = ended(["given_up", "given_up"]);
    const again = closedEpisodeOf(9, 200, { state: "healed", acted: 1, node: first!.node });
    expect(of([first!, second!, again], 1)).toEqual({ nodes: 1, healed: 1, isPoor: false });
  });

  test("counts each node once, by its last episode", () => {
    const sixOfTwo = Array.from({ length: 6 }, (_, index) => ended(["given_up"], { node: `node_${index % 2}` })[0]!);
    expect(of(sixOfTwo)).toEqual({ nodes: 2, healed: 0, isPoor: false });
    const [first, ...others] = ended(["given_up", "given_up", "given_up", "given_up"]);
    const again = closedEpisodeOf(9, 200, { state: "healed", acted: 1, node: first!.node });
    expect(of([first!, ...others, again])).toEqual({ nodes: 4, healed: 1, isPoor: true });
  });

  test("is measured anew from when an operator reset it", () => {
    const all = ended(["given_up", "given_up", "given_up", "given_up"]);
    expect(efficacyOf(all, { ...POLICY, since: 100 }, { window: 4, minSuccess: 0.5 })).toMatchObject({ nodes: 3 });
  });

  test("with a share of 0 % is never poor", () => {
    expect(of(ended(["given_up", "given_up", "given_up", "given_up"]), 4, 0).isPoor).toBe(false);
  });
});
