import { SECOND_MS } from "../base/duration.ts";
import { createTransport } from "../service/transport.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode } from "./context.ts";

/** A container engine waits 30 s by default; a daemon that needs a tenth of it is not well. */
const TIMEOUT_MS = 3 * SECOND_MS;

/** `healthcheck`: whether the daemon answers /-/healthy. */
export async function healthcheck({ url }: { url: string }, { out, err }: CommandContext): Promise<ExitCode> {
  const transport = createTransport({ baseUrl: url });
  const answer = await transport.request(
    { method: "GET", path: "/-/healthy", headers: {} },
    AbortSignal.timeout(TIMEOUT_MS),
  );
  await transport.close();
  if (answer.ok && answer.value.status === 200) {
    out.write("healthy\n");
    return EXIT_FINE;
  }
  const why = answer.ok ? `it answered ${answer.value.status}` : answer.error.message;
  err.write(`proxywarden: ${url} is not healthy: ${why}\n`);
  return EXIT_BAD;
}
