import type { Transport, TransportRequest } from "../../../src/model/ports.ts";

/**
 * Returns a wrapper of a service that changes its responses with status 200. `change` gets the body and the request, and
 * returns the new body, or null to leave the response as it is.
 */
export const changingBodies =
  (change: (body: string, request: TransportRequest) => string | null) =>
  (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (!answer.ok || answer.value.status !== 200) return answer;
      const changed = change(new TextDecoder().decode(answer.value.body), request);
      return changed === null
        ? answer
        : { ok: true, value: { ...answer.value, body: new TextEncoder().encode(changed) } };
    },
  });

type ListRecord = Readonly<Record<string, unknown>>;

/** Returns a wrapper of a service that changes the records of a list. */
export const changingRecords = (list: "nodes" | "sessions", change: (record: ListRecord, index: number) => object) =>
  changingBodies((body, { path }) => {
    if (!path.startsWith(`/v1/${list}?`)) return null;
    const page = JSON.parse(body);
    return JSON.stringify({ ...page, data: page.data.map(change) });
  });
