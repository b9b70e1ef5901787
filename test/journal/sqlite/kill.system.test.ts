import { expect, test } from "vitest";
import { actionOf, decisionOf, episodeOf, timerOf } from "../arbitrary-changes.ts";
import { startOtherProcess } from "./other-process.ts";
import { useStoreFolder } from "./store-folder.ts";

const folder = useStoreFolder();

const KILLS = 4;
/** Timers in each commit: enough that a kill often finds one under way. */
const TIMERS = 500;

/**
 * Commits one round after another: an episode, an action, a decision, timers, and a fact that says which round it was.
 */
const committing = `
  const { journal } = store.value;
  const row = (of, said) => ({ ...of, ...said });
  const [episode, action, decision, timer] = ${JSON.stringify([episodeOf(1), actionOf(2, "ep-1"), decisionOf(0), timerOf("")])};
  for (let round = Number((await journal.load(0)).facts.get("remediation.round") ?? 0) + 1; ; round++) {
    const timers = Array.from({ length: ${TIMERS} }, (_, index) =>
      ({ kind: "timer", row: row(timer, { node: "node_" + index, trueMs: round }) }));
    await journal.commit([
      { kind: "episode", row: row(episode, { id: "ep-" + (2 * round - 1) }) },
      ...timers,
      { kind: "action", row: row(action, { id: "act-" + 2 * round, episode: "ep-" + (2 * round - 1) }) },
      { kind: "decision", row: row(decision, { at: round }) },
      { kind: "fact", key: "remediation.round", value: String(round) },
    ]);
    say(String(round));
  }`;

test("every acknowledged commit survives a kill, and no part of any other does", async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    const other = startOtherProcess(folder.path, committing);
    const overrides: string[] = [];
    for (let line = 0; line < 5 + 3 * kill; line++) overrides.push(await other.line());
    overrides.push(...(await other.kill()));
    const acknowledged = Number(overrides.at(-1));
    expect(acknowledged).toBeGreaterThan(0);

    const store = folder.open();
    const { timers, episodes, actions, facts, lastNumber } = await store.journal.load(0);
    const rounds = Number(facts.get("remediation.round"));
    expect(rounds).toBeGreaterThanOrEqual(acknowledged);
    expect(episodes).toHaveLength(rounds);
    expect(actions.map(({ episode }) => episode)).toEqual(episodes.map(({ id }) => id));
    expect(lastNumber).toBe(2 * rounds);
    expect((await store.journal.decisions({ limit: 1 }))[0]?.at).toBe(rounds);
    expect(timers).toHaveLength(TIMERS);
    expect(timers.filter(({ trueMs }) => trueMs !== rounds)).toEqual([]);
    store.close();
  }
});
