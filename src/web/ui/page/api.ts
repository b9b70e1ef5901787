import type { nodeView } from "../../api/node-views.ts";
import type { ExplanationView, remediationStatusView } from "../../api/remediation-views.ts";
import type { budgetView, LeaderView, LinksView, statusView } from "../../api/status-views.ts";

/** `GET api/v1/status`. */
export type Status = ReturnType<typeof statusView> & {
  readonly accepts_commands: boolean;
  readonly leader: LeaderView;
  readonly links: LinksView;
  readonly remediation: ReturnType<typeof remediationStatusView>;
};
/** A collector of that status. */
export type Collector = Status["collectors"]["nodes"];

/** `GET api/v1/budget`. */
export type Budget = ReturnType<typeof budgetView>;
/** A rate limit category of that budget. */
export type Category = Budget["categories"]["node_management"];

/** Fields of a node that is in the fleet. */
type NodeFields = NonNullable<ReturnType<typeof nodeView>>;

/** `GET api/v1/nodes/ID`. */
export type NodeDocument = ExplanationView & Partial<NodeFields> & { readonly id: string };

/**
 * Why a request failed. The status is 0 if there was no response, or not one in JSON, and 202 if the leader has not
 * replied to a command that a standby forwarded.
 */
export interface RequestError {
  readonly status: number;
  readonly message: string;
}

/** A response, or why the request failed. */
export type ApiResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: RequestError };

/** Responses take milliseconds, so a request that takes longer than this is considered lost. */
const REQUEST_TIMEOUT_MS = 5_000;
/** A standby answers a command after 5 s if the leader has not. */
const COMMAND_TIMEOUT_MS = 20_000;

/** Requests a route below `api/v1/`. Never rejects. */
export const getJson = <T>(path: string, timeoutMs = REQUEST_TIMEOUT_MS): Promise<ApiResult<T>> =>
  request<T>(path, {}, timeoutMs);

/** Characters that a header can't contain, so no request can be sent with them. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Sends an operator command. Never rejects. A token that can't be sent counts as a wrong one. */
export async function postCommand(
  path: string,
  token: string,
  parameters: object,
): Promise<ApiResult<{ readonly message: string }>> {
  if (UNSENDABLE.test(token)) {
    return { ok: false, error: { status: 401, message: "the token has a character that can't be sent" } };
  }
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return request(path, { method: "POST", headers, body: JSON.stringify(parameters) }, COMMAND_TIMEOUT_MS);
}

async function request<T>(path: string, init: RequestInit, timeoutMs: number): Promise<ApiResult<T>> {
  let status = 0;
  try {
    const response = await fetch(`api/v1/${path}`, { ...init, signal: AbortSignal.timeout(timeoutMs) });
    status = response.status;
    const value: unknown = await response.json();
    if (response.ok && status !== 202) return { ok: true, value: value as T };
    const message = (value as { message?: unknown } | null)?.message;
    return { ok: false, error: { status, message: String(message ?? response.statusText) } };
  } catch (error) {
    // A proxy between the browser and the daemon responds in HTML.
    const isOther = error instanceof SyntaxError;
    const message = isOther ? `the response (HTTP ${status}) is not from the daemon` : "the daemon does not respond";
    return { ok: false, error: { status: 0, message } };
  }
}
