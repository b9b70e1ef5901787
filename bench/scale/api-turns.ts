import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { median } from "../bench-process.ts";

/** Measurements of a route of the JSON API. */
export interface RouteResult {
  readonly route: string;
  /** Time until the complete body was received. */
  readonly ms: number;
  /** Longest turn of the daemon's event loop meanwhile. */
  readonly turnMs: number;
}

/** Requests of each route, of which the median is shown, so that other work of the daemon hardly counts. */
const ROUNDS = 15;

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
    ...{ status: "status", budget: "budget", history: "history", fleet: "fleet", policies: "policies" },
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

/** Measures every route that reads, in rounds. The daemon was started with the loop probe. */
export async function measureRoutes(daemon: ChildProcess, url: string): Promise<readonly RouteResult[]> {
  const measured = Object.entries(await pathsOf(url)).map(([route, path]) => ({
    route,
    url: path.startsWith("/") ? url + path : `${url}/api/v1/${path}`,
    ms: [] as number[],
    turns: [] as number[],
  }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { url: routeUrl, ms, turns } of measured) {
      await ask(daemon, "start");
      const startedAt = performance.now();
      await request(routeUrl);
      ms.push(performance.now() - startedAt);
      turns.push((await ask(daemon, "stop")) as number);
    }
  }
  return measured.map(({ route, ms, turns }) => ({ route, ms: median(ms), turnMs: median(turns) }));
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
