import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { median } from "../bench-process.ts";

/** Measurements of a route of the JSON API. */
export interface RouteResult {
  readonly route: string;
  /** Longest turn of the daemon's event loop meanwhile. */
  readonly turnMs: number;
}

/** Number of requests of each route. The median is shown, so that other work of the daemon hardly counts. */
export const ROUNDS = 15;

/** Returns the routes to measure, with the parameters that cost most, by the name that is shown. */
async function pathsOf(url: string): Promise<Readonly<Record<string, string>>> {
  const answer = await fetch(`${url}/api/v1/nodes?limit=1000`);
  const { data, pagination } = (await answer.json()) as {
    readonly data: readonly { readonly id: string }[];
    readonly pagination: { readonly total: number };
  };
  const { id } = data.at(-1)!;
  const lastPage = Math.max(1, Math.floor(pagination.total / 1_000));
  return {
    "/": "/",
    "/-/ready": "/-/ready",
    status: "status",
    budget: "budget",
    history: "history",
    fleet: "fleet",
    policies: "policies",
    "nodes?limit=1000": `nodes?limit=1000&page=${lastPage}`,
    "nodes?q=, all nodes": "nodes?q=node&limit=1000",
    "nodes?q=, no node": "nodes?q=no-such-node",
    "nodes?status=&region=": "nodes?status=online&region=us-east&limit=1000",
    "nodes/ID": `nodes/${id}`,
    "decisions?limit=1000": "decisions?limit=1000",
    "decisions?policy=&node=": `decisions?policy=mass-event&node=${id}`,
    "decisions?policy=": "decisions?policy=mass-event&limit=1000",
    "actions?limit=1000": "actions?limit=1000",
    "actions?state=awaiting": "actions?state=awaiting&limit=1000",
    "orders?limit=1000": "orders?limit=1000",
    "holds?limit=1000": "holds?limit=1000",
    "holds?policy=": "holds?policy=mass-event&limit=1000",
    events: "events?last_event_id=1",
  };
}

/** Settings with which the nodes of the mass event are held by the storm guard. */
export const MASS_EVENT_CONFIG = { safety: { mode: "enforce" } };

/** Measurements while a large part of the fleet is held. */
export interface MassEvent {
  readonly heldNodes: number;
  readonly routes: readonly RouteResult[];
}

/** Minimum share of the nodes that are held. */
const HELD_SHARE_MIN = 0.15;
/** Two walks of the nodes, a minute apart, show that they fail. A large fleet takes minutes to evaluate and journal. */
const WAIT_MS_MAX = 15 * MINUTE_MS;

/** Makes the daemon load the changed configuration, waits until the nodes are held, and measures the routes. */
export async function measureMassEvent(daemon: ChildProcess, url: string, nodes: number): Promise<MassEvent> {
  daemon.kill("SIGHUP");
  const until = performance.now() + WAIT_MS_MAX;
  let [heldNodes, before] = [0, 0];
  while (heldNodes < nodes * HELD_SHARE_MIN || heldNodes !== before) {
    if (performance.now() > until) throw new Error(`only ${heldNodes} nodes are held`);
    await sleep(5 * SECOND_MS);
    const answer = (await (await fetch(`${url}/api/v1/status`)).json()) as { remediation: { held_nodes: number } };
    [before, heldNodes] = [heldNodes, answer.remediation.held_nodes];
  }
  return { heldNodes, routes: await measureRoutes(daemon, url) };
}

/** Measures every route that reads, in rounds. The daemon was started with the loop probe. */
async function measureRoutes(daemon: ChildProcess, url: string): Promise<readonly RouteResult[]> {
  const measured = Object.entries(await pathsOf(url)).map(([route, path]) => ({
    route,
    url: path.startsWith("/") ? url + path : `${url}/api/v1/${path}`,
    turns: [] as number[],
  }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { url: routeUrl, turns } of measured) {
      await ask(daemon, "start");
      await request(routeUrl);
      turns.push((await ask(daemon, "stop")) as number);
    }
  }
  return measured.map(({ route, turns }) => ({ route, turnMs: median(turns) }));
}

async function ask(daemon: ChildProcess, command: "start" | "stop"): Promise<unknown> {
  const answered = once(daemon, "message");
  daemon.send(command);
  const [answer] = (await answered) as [unknown];
  return answer;
}

/** Receives a response, or the first part of one that has no end. */
async function request(url: string): Promise<void> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
    await response.arrayBuffer();
    return;
  }
  const reader = response.body!.getReader();
  await reader.read();
  await reader.cancel();
}
