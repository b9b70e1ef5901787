import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { RenderInput } from "../../../src/metrics/families/family.ts";
import { MetricsEndpoint, type Scrape, sendScrape } from "../../../src/web/scrape/metrics-endpoint.ts";
import { bodyOf } from "../../harness/scrape-body.ts";
import { listenInTest } from "../../harness/servers/listening-server.ts";
import { referenceRender } from "../../metrics/naive-renderer.ts";
import { fullInput, openMetricsSamples, promtoolFindings } from "../../metrics/sample-page.ts";
import { buildFleet, renderInput } from "../../metrics/snapshot-fixtures.ts";

/** Creates an endpoint on a clock that stands still. */
function endpointOnStoppedClock() {
  const daemonMetrics = createDaemonMetrics({ process: false });
  return { daemonMetrics, exposition: new MetricsEndpoint({ clock: { monotonic: () => 0 }, daemonMetrics }) };
}

const nodesWith = (uptimeHours: number, count = 3, now = 0): RenderInput =>
  renderInput(
    { fleet: buildFleet(Array.from({ length: count }, (_, index) => ({ id: `node_${index}`, uptimeHours }))) },
    { now },
  );

const textOf = (scrape: Scrape) => bodyOf(scrape).toString();
const networkPart = (text: string) => text.slice(0, text.indexOf("# HELP proxywarden_"));

describe("a scrape", () => {
  test("before the first snapshot shows the daemon's own metrics", async () => {
    const { exposition } = endpointOnStoppedClock();
    const scrape = await exposition.scrape({});
    expect(textOf(scrape)).toMatch(/^# HELP proxywarden_/);
    expect(scrape.contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(scrape.encoding).toBeUndefined();
  });

  test("has the network's metrics of the last snapshot and current daemon metrics", async () => {
    const { exposition, daemonMetrics } = endpointOnStoppedClock();
    const input = fullInput();
    await exposition.refresh(input);
    daemonMetrics.set("proxywarden_month_calls", {}, 77);
    const scrape = await exposition.scrape({});
    const text = textOf(scrape);
    expect(networkPart(text)).toBe(referenceRender(input));
    expect(text).toContain("proxywarden_month_calls 77\n");
    expect(text).toMatch(/proxywarden_export_series \d{2,}\n/);
    expect(promtoolFindings(text)).toBe("");
  });

  test("has no metrics of the network after they are cleared, until the next snapshot", async () => {
    const { exposition } = endpointOnStoppedClock();
    void exposition.refresh(nodesWith(1));
    const before = exposition.scrape({});
    await exposition.refresh(null);
    expect(networkPart(textOf(await before))).toBe("");
    expect(networkPart(textOf(await exposition.scrape({})))).toBe("");
    await exposition.refresh(nodesWith(2));
    expect(networkPart(textOf(await exposition.scrape({})))).toBe(referenceRender(nodesWith(2)));
  });

  test("in OpenMetrics passes the strict parser", async () => {
    const { exposition } = endpointOnStoppedClock();
    await exposition.refresh(fullInput());
    const scrape = await exposition.scrape({ accept: "application/openmetrics-text" });
    const text = textOf(scrape);
    expect(scrape.contentType).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
    expect(text).toMatch(/\n# EOF\n$/);
    expect(openMetricsSamples(text)).toBe(text.match(/^[^#\n]/gm)?.length);
  });

  test("with gzip has the same content, in both formats", async () => {
    const { exposition } = endpointOnStoppedClock();
    await exposition.refresh(fullInput());
    const gzipped: Scrape[] = [];
    for (const accept of ["text/plain", "application/openmetrics-text"]) {
      const scrape = await exposition.scrape({ accept, "accept-encoding": "gzip" });
      gzipped.push(scrape);
      const body = bodyOf(scrape);
      expect(scrape.encoding).toBe("gzip");
      expect(scrape.contentLength).toBe(body.length);
      expect(gunzipSync(body).toString()).toBe(textOf(await exposition.scrape({ accept })));
    }
    const [text, openMetrics] = gzipped;
    const ofText = new Set(text!.chunks);
    expect(Array.from(openMetrics!.chunks).filter((chunk) => ofText.has(chunk)).length).toBeGreaterThan(20);
  });

  test("with gzip may show an earlier snapshot if compression is slow, but never one from before a reload", async () => {
    const clock = { at: 0, monotonic: () => (clock.at += 60) };
    const exposition = new MetricsEndpoint({ clock, daemonMetrics: createDaemonMetrics({ process: false }) });
    const shown = async () => {
      const scrape = await exposition.scrape({ "accept-encoding": "gzip" });
      return networkPart(gunzipSync(bodyOf(scrape)).toString());
    };
    const first = nodesWith(1);
    await exposition.refresh(first);
    expect(await shown()).toBe(referenceRender(first));
    await exposition.refresh({ ...nodesWith(2), options: first.options });
    expect(await shown()).toBe(referenceRender(first));
    await exposition.refresh(nodesWith(3));
    expect(await shown()).toBe(referenceRender(nodesWith(3)));
  });

  test("counts the families dropped because of series_max", async () => {
    const { exposition } = endpointOnStoppedClock();
    await exposition.refresh(renderInput({ fleet: nodesWith(1).snapshot.fleet }, { options: { seriesMax: 10 } }));
    expect(textOf(await exposition.scrape({}))).toMatch(/proxywarden_export_families_dropped [1-9]\n/);
  });
});

describe("a refresh", () => {
  test("waits for the previous one; of several waiting ones only the newest is published", async () => {
    const { exposition } = endpointOnStoppedClock();
    const first = exposition.refresh(nodesWith(1));
    const second = exposition.refresh(nodesWith(2));
    const third = exposition.refresh(nodesWith(3));
    await Promise.all([first, second, third]);
    expect(networkPart(textOf(await exposition.scrape({})))).toBe(referenceRender(nodesWith(3)));
  });

  test("yields between slices, and scrapes in the meantime show the previous snapshot", async () => {
    let now = 0;
    // The clock advances by a millisecond at each reading, so each step fills a slice.
    const clock = { monotonic: () => now++ };
    const exposition = new MetricsEndpoint({ clock, daemonMetrics: createDaemonMetrics({ process: false }) });
    await exposition.refresh(nodesWith(1, 2_000));
    let turns = 0;
    let isOver = false;
    const refreshed = exposition.refresh(nodesWith(22, 2_000)).then(() => {
      isOver = true;
    });
    const scrapes: Promise<Scrape>[] = [];
    for (; !isOver; turns++) {
      scrapes.push(exposition.scrape({}));
      await new Promise(setImmediate);
    }
    await refreshed;
    expect(turns).toBeGreaterThan(3);
    const before = referenceRender(nodesWith(1, 2_000));
    const after = referenceRender(nodesWith(22, 2_000));
    const shown = (await Promise.all(scrapes)).map((scrape) => networkPart(textOf(scrape)));
    expect(shown.every((text) => text === before || text === after)).toBe(true);
    expect(shown.filter((text) => text === before).length).toBeGreaterThan(3);
    expect(networkPart(textOf(await exposition.scrape({}))) === after).toBe(true);
  });

  test("does not starve scrapes if refreshes never stop", async () => {
    const { exposition } = endpointOnStoppedClock();
    let isServed = false;
    const scraped = exposition.refresh(nodesWith(1)).then(async () => {
      await exposition.scrape({});
      isServed = true;
    });
    for (let hours = 2; !isServed && hours < 20; hours++) await exposition.refresh(nodesWith(hours));
    expect(isServed).toBe(true);
    await scraped;
  });

  test("rejects if publishing fails, and the next one starts fresh", async () => {
    const { exposition } = endpointOnStoppedClock();
    await exposition.refresh(nodesWith(1));
    const broken = { ...nodesWith(2), staleAfterMs: undefined } as unknown as RenderInput;
    await expect(exposition.refresh(broken)).rejects.toThrow(TypeError);
    await exposition.refresh(nodesWith(3));
    expect(networkPart(textOf(await exposition.scrape({})))).toBe(referenceRender(nodesWith(3)));
  });
});

describe("a scrape that is being sent", () => {
  test("to a slow client keeps its snapshot while others follow", async () => {
    const { exposition } = endpointOnStoppedClock();
    // Chunks remain to be rendered when the later snapshots are published.
    const first = nodesWith(1, 2_000);
    await exposition.refresh(first);
    const slow = await exposition.scrape({});
    expect(slow.contentLength).toBeNull();
    const chunks = slow.chunks[Symbol.iterator]();
    let text = Buffer.from(chunks.next().value!).toString();
    for (const hours of [22, 333]) {
      await exposition.refresh(nodesWith(hours, 2_000));
      text += Buffer.from(chunks.next().value!).toString();
    }
    // Another client takes a chunk of a later snapshot before each of the others is sent.
    const later = (await exposition.scrape({})).chunks[Symbol.iterator]();
    for (let next = chunks.next(); !next.done && later.next(); next = chunks.next()) text += Buffer.from(next.value);
    expect(networkPart(text) === referenceRender(first)).toBe(true);
  });

  test("is revoked if it shows the oldest of too many snapshots that clients are still reading", async () => {
    const { exposition } = endpointOnStoppedClock();
    const slow: Scrape[] = [];
    for (let round = 1; round <= 4; round++) {
      await exposition.refresh(nodesWith(round));
      slow.push(await exposition.scrape({}));
    }
    expect(slow.map(({ revoked }) => revoked.aborted)).toEqual([true, false, false, false]);
  });
});

describe("over HTTP", () => {
  /** Starts a server that sends the scrapes of `answer`, and returns its URL. */
  async function serving(answer: (accept: IncomingMessage["headers"]) => Promise<Scrape>): Promise<string> {
    const server = createServer(async (request, response) => sendScrape(response, await answer(request.headers)));
    return `http://127.0.0.1:${await listenInTest(server)}/metrics`;
  }

  async function servingNodes(count: number): Promise<{ url: string; text: string }> {
    const { exposition } = endpointOnStoppedClock();
    await exposition.refresh(nodesWith(1, count));
    return { url: await serving((headers) => exposition.scrape(headers)), text: textOf(await exposition.scrape({})) };
  }

  async function output(command: string, args: readonly string[]): Promise<Buffer> {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
    const [bytes, [code]] = await Promise.all([buffer(child.stdout), once(child, "close")]);
    expect(code).toBe(0);
    return bytes;
  }

  test("curl, Python and fetch decompress the gzip body", async () => {
    const { url, text } = await servingNodes(3_000);
    expect((await output("curl", ["-sS", "--compressed", url])).toString() === text).toBe(true);
    const python =
      "import gzip, sys, urllib.request as u\nr = u.Request(sys.argv[1], headers={'Accept-Encoding': 'gzip'})\nsys.stdout.buffer.write(gzip.decompress(u.urlopen(r).read()))";
    expect((await output("/usr/bin/python3", ["-c", python, url])).toString() === text).toBe(true);
    const response = await fetch(url);
    expect(response.headers.get("content-encoding")).toBe("gzip");
    expect(response.headers.get("vary")).toBe("Accept, Accept-Encoding");
    expect((await response.text()) === text).toBe(true);
  });

  test("a client that pauses gets everything", async () => {
    const { url, text } = await servingNodes(20_000);
    const [response] = (await once(get(url), "response")) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) {
      chunks.push(chunk as Buffer);
      response.pause();
      await new Promise(setImmediate);
    }
    expect(Buffer.concat(chunks).toString() === text).toBe(true);
  });

  test("a scrape is released exactly once, even if the client disconnects", async () => {
    let done = 0;
    const returned: (() => void)[] = [];
    const scrape = (bytes: number): Scrape => ({
      contentType: "text/plain",
      contentLength: bytes,
      chunks: [Buffer.alloc(bytes)],
      revoked: new AbortController().signal,
      release() {
        done++;
        returned.shift()?.();
      },
    });
    const nextReturn = () => new Promise<void>((resolve) => returned.push(resolve));
    let size = 10;
    const url = await serving(() => Promise.resolve(scrape(size)));
    const first = nextReturn();
    await (await fetch(url)).text();
    await first;
    expect(done).toBe(1);

    size = 50_000_000;
    const second = nextReturn();
    const [response] = (await once(get(url), "response")) as [IncomingMessage];
    response.destroy();
    await second;
    expect(done).toBe(2);
  });

  test("a client whose scrape is revoked is disconnected", async () => {
    const revocation = new AbortController();
    const given = Promise.withResolvers<void>();
    const url = await serving(() =>
      Promise.resolve({
        contentType: "text/plain",
        contentLength: 50_000_000,
        chunks: [Buffer.alloc(50_000_000)],
        revoked: revocation.signal,
        release: given.resolve,
      }),
    );
    const [response] = (await once(get(url), "response")) as [IncomingMessage];
    revocation.abort();
    await expect(buffer(response)).rejects.toThrow("aborted");
    await given.promise;
  });
});
