import { expect, test } from "vitest";
import { listNodesCall, readStatsCall } from "../../../src/api-client/endpoints.ts";
import { createTransport } from "../../../src/api-client/transport.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { callMetrics } from "../../api-client/client-fixture.ts";
import { startSaturatingLoad } from "../../api-client/rate-limits/saturating-client.ts";
import { createPlanLimits, createTestClient, createTestRateLimiter } from "../../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { freePort } from "../../harness/servers/free-port.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { requireProgram, startProcess } from "../process.ts";
import { startNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** A minute of the daemon is a second of nginx. */
const SPEED = 60;
/** Calls that nginx allows per minute of the daemon. */
const PER_MINUTE = 40;
/** Responses until the limit is learned, and responses that are counted. */
const WARM_UP_ANSWERS = 200;
const COUNTED_ANSWERS = isLongRun ? 800 : 300;

const config = (folder: string, port: number, upstream: string) => `
daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  limit_req_zone $http_authorization zone=key:1m rate=${PER_MINUTE}r/s;
  limit_req_status 429;
  server {
    listen 127.0.0.1:${port};
    location / {
      limit_req zone=key burst=10 nodelay;
      proxy_pass ${upstream};
    }
  }
}
`;

/** Starts nginx in front of `upstream`; it stops after the test. Returns its URL. */
async function startNginx(upstream: string): Promise<string> {
  const program = requireProgram("/usr/sbin/nginx", "nginx");
  const folder = createTempFolder();
  const port = await freePort();
  const file = folder.write("nginx.conf", config(folder.path, port, upstream));
  const nginx = startProcess(program, ["-p", folder.path, "-e", "stderr", "-c", file]);
  const url = `http://127.0.0.1:${port}`;
  await waitUntil(
    () => `nginx listens; its log:\n${nginx.err()}`,
    () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
  );
  return url;
}

test("behind nginx's limit_req, less than 1% of calls are rejected in the long run", async () => {
  const network = await startNetwork({ speed: SPEED });
  const transport = createTransport({ baseUrl: await startNginx(network.url) });
  const { clock } = network;
  const codes: string[] = [];
  const random = seededRandom(1);
  const rateLimiter = createTestRateLimiter({ limits: createPlanLimits("enterprise"), clock, random });
  const client = createTestClient({
    transport,
    rateLimiter,
    clock,
    random,
    // Ten seconds of real time, enough for a slow machine.
    timeoutMs: SPEED * 10_000,
    metrics: callMetrics((_, code) => void codes.push(code)),
  });
  const loads = [listNodesCall({ page: 1, limit: 1 }), readStatsCall].map((call) =>
    startSaturatingLoad(client, clock, call, 4),
  );
  const answers = (count: number) => waitUntil(`${count} responses arrived`, () => codes.length >= count, 60_000);
  await answers(WARM_UP_ANSWERS);
  await answers(WARM_UP_ANSWERS + COUNTED_ANSWERS);
  for (const load of loads) load.stop();
  const counted = codes.slice(WARM_UP_ANSWERS, WARM_UP_ANSWERS + COUNTED_ANSWERS);
  expect(codes.slice(0, WARM_UP_ANSWERS)).toContain("429");
  expect(counted.filter((code) => code === "429").length).toBeLessThan(COUNTED_ANSWERS / 100);
  expect(counted.filter((code) => code === "200").length).toBeGreaterThan(0.98 * COUNTED_ANSWERS);
  await transport.close();
}, 60_000);
