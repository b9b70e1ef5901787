import type { Transport, TransportRequest } from "../../../src/model/ports.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import { findNode } from "../../../src/simulator/fleet/fleet.ts";
import { answerInvariants } from "../invariants/answer-invariants.ts";
import { postInvariants } from "../invariants/post-invariants.ts";
import { createRetryAfterInvariant } from "../invariants/retry-after-invariant.ts";
import {
  type NodeTruth,
  nodeTruthOf,
  type PostAnswer,
  type PostAttempt,
  type SimulationParts,
} from "./simulation-parts.ts";

/**
 * Creates a transport that checks every POST against the invariants before the service receives it, and every answer
 * before the daemon receives it. `onPost` is called after the POST was handed to the network.
 */
export function createCheckedTransport(
  parts: SimulationParts,
  inner: Transport,
  onPost: (post: PostAttempt) => void,
): Transport {
  const reads = new Map<string, NodeTruth>();
  const readBodies = new Map<string, Buffer>();
  const retryAfter = createRetryAfterInvariant(parts);

  /**
   * Records what a read showed. If a cache answered, a node that has recovered since the list showed it may still look
   * as it did at the previous read.
   */
  function recordRead(node: string, body: Uint8Array, truth: NodeTruth): void {
    const shown = reads.get(node);
    const isRepeated = readBodies.get(node)?.equals(body) === true;
    const isListedSince = parts.startMs + parts.observations.listedAt(node) >= truth.changedAt;
    reads.set(node, isRepeated && !isListedSince && shown !== undefined ? { ...shown, at: truth.at } : truth);
    readBodies.set(node, Buffer.from(body));
  }

  function createPostAttempt(request: TransportRequest, node: string, kind: string): PostAttempt {
    const { actions, inFlight } = parts.recordedState;
    const rows = [...inFlight].map((id) => actions.get(id)!).filter((action) => action.node === node);
    const read = reads.get(node) ?? null;
    return {
      at: parts.clock.monotonic(),
      steppedAt: parts.clock.monotonic() + parts.forwardMs,
      node,
      kind,
      body: request.body ?? "",
      region: findNode(parts.service.network.fleet, node)?.region ?? "",
      truth: nodeTruthOf(parts, node),
      read: read !== null && read.at >= parts.processStartedAt ? read : null,
      action: rows.find(({ state }) => state === "posting") ?? null,
      answer: null,
    };
  }

  function recordPost(post: PostAttempt): void {
    parts.posts.push(post);
    parts.disruptedByUs.set(post.node, post);
    const key = `${post.action?.episode}/${post.action?.step}`;
    parts.postsOfStep.set(key, [...(parts.postsOfStep.get(key) ?? []), post]);
  }

  async function send(request: TransportRequest, signal: AbortSignal, node: string, kind: string) {
    const post = createPostAttempt(request, node, kind);
    for (const [name, invariant] of Object.entries(postInvariants)) {
      const violated = invariant(post, parts);
      if (violated !== null)
        parts.addViolation(name, `${kind} of ${node} (${post.action?.id ?? "no row"}): ${violated}`);
    }
    recordPost(post);
    const pendingAnswer = inner.request(request, signal);
    onPost(post);
    const answer = await pendingAnswer;
    post.answer = answer.ok ? answer.value.status : answer.error.kind;
    return answer;
  }

  function checkAnswer(answer: PostAnswer, sentAt: MonotonicMs): PostAnswer {
    if (answer.ok) parts.serviceClock.recordAnswer(answer.value, sentAt, parts.machine.monotonic());
    for (const [name, invariant] of Object.entries(answerInvariants)) {
      const violated = invariant(answer, parts);
      if (violated !== null) parts.addViolation(name, violated);
    }
    return answer;
  }

  return {
    async request(request, signal) {
      const sentAt = parts.machine.monotonic();
      const [, node, kind] = /^\/v1\/nodes\/([^/?]+)(?:\/(\w+))?$/.exec(request.path) ?? [];
      if (node !== undefined && kind !== undefined) return checkAnswer(await send(request, signal, node, kind), sentAt);
      const truth = node === undefined ? null : nodeTruthOf(parts, node);
      const violated = retryAfter.violation(request.path);
      if (violated !== null) parts.addViolation("requested before Retry-After", violated);
      const answer = checkAnswer(await inner.request(request, signal), sentAt);
      retryAfter.recordAnswer(request.path, answer);
      if (!answer.ok) return answer;
      const { status, body } = answer.value;
      const at = parts.clock.monotonic();
      if (node !== undefined) {
        parts.observations.recordRead(node, status, body, at);
        parts.regionOutages.recordRead(status, body);
      } else if (status === 200 && request.path.startsWith("/v1/nodes?")) {
        parts.observations.recordPage(body, at);
        parts.regionOutages.recordPage(body);
      }
      if (truth !== null && status === 200) recordRead(node!, body, truth);
      return answer;
    },
    close: () => inner.close(),
  };
}
