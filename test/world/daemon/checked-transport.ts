import type { ServiceRequest, Transport } from "../../../src/model/ports.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import { answerLaws } from "../invariants/answer-invariants.ts";
import { safetyLaws } from "../invariants/post-invariants.ts";
import { type Answer, type Moment, momentOf, type Post, type Stage } from "./simulation-parts.ts";

/**
 * A transport that holds every POST against the laws before the service sees it. `onPost` is told of each once it is on
 * its way.
 */
export function createWitness(stage: Stage, inner: Transport, onPost: (post: Post) => void): Transport {
  const reads = new Map<string, Moment>();

  function postOf(request: ServiceRequest, node: string, kind: string): Post {
    const { actions, underWay } = stage.chronicle;
    const rows = [...underWay].map((id) => actions.get(id)!).filter((action) => action.node === node);
    const read = reads.get(node) ?? null;
    return {
      at: stage.clock.monotonic(),
      steppedAt: stage.clock.monotonic() + stage.forwardMs,
      ...{ node, kind, body: request.body ?? "" },
      region: findNode(stage.service.world.fleet, node)?.region ?? "",
      truth: momentOf(stage, node),
      read: read !== null && read.at >= stage.bornAt ? read : null,
      action: rows.find(({ state }) => state === "posting") ?? null,
      answer: null,
    };
  }

  function keep(post: Post): void {
    stage.posts.push(post);
    stage.underHand.set(post.node, post);
    const key = `${post.action?.episode}/${post.action?.step}`;
    stage.postsOfStep.set(key, [...(stage.postsOfStep.get(key) ?? []), post]);
  }

  async function send(request: ServiceRequest, signal: AbortSignal, node: string, kind: string) {
    const post = postOf(request, node, kind);
    for (const [name, law] of Object.entries(safetyLaws)) {
      const broken = law(post, stage);
      if (broken !== null) stage.breach(name, `${kind} of ${node} (${post.action?.id ?? "no row"}): ${broken}`);
    }
    keep(post);
    const answering = inner.request(request, signal);
    onPost(post);
    const answer = await answering;
    post.answer = answer.ok ? answer.value.status : answer.error.kind;
    return answer;
  }

  /** Holds an answer against the laws. */
  function held(answer: Answer): Answer {
    for (const [name, law] of Object.entries(answerLaws)) {
      const broken = law(answer, stage);
      if (broken !== null) stage.breach(name, broken);
    }
    return answer;
  }

  return {
    async request(request, signal) {
      const [, node, kind] = /^\/v1\/nodes\/([^/?]+)(?:\/(\w+))?$/.exec(request.path) ?? [];
      if (node !== undefined && kind !== undefined) return held(await send(request, signal, node, kind));
      const moment = node === undefined ? null : momentOf(stage, node);
      const answer = held(await inner.request(request, signal));
      if (!answer.ok) return answer;
      const { status, body } = answer.value;
      const at = stage.clock.monotonic();
      if (node !== undefined) stage.seen.read(node, status, body, at);
      else if (status === 200 && request.path.startsWith("/v1/nodes?")) stage.seen.page(body, at);
      if (moment !== null && status === 200) reads.set(node!, moment);
      return answer;
    },
    close: () => inner.close(),
  };
}
