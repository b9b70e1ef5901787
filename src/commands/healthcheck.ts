import { SECOND_MS } from "../base/duration.ts";
import { createTransport } from "../service/transport.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode } from "./context.ts";
import { withProgress } from "./progress.ts";

/** A container engine waits 30 s by default; a daemon that needs a tenth of it is not well. */
const TIMEOUT_MS = 3 * SECOND_MS;

/** `healthcheck`: whether the daemon answers /-/healthy. */
export async function healthcheck({ url }: { url: string }, context: CommandContext): Promise<ExitCode> {
  const { out, err } = context;
  const transport = createTransport({ baseUrl: url });
  const request = { method: "GET", path: "/-/healthy", headers: {} } as const;
  const answer = await withProgress(
    `waiting for ${url}`,
    transport.request(request, AbortSignal.timeout(TIMEOUT_MS)),
    context,
  );
  await transport.close();
  if (answer.ok && answer.value.status === 200) {
    out.write("healthy\n");
    return EXIT_FINE;
  }
  const why = answer.ok
    ? `it answered ${answer.value.status}`
    : `${answer.error.message}; where a daemon is, say with --url`;
  err.write(`proxywarden: ${url} is not healthy: ${why}\n`);
  return EXIT_BAD;
}
