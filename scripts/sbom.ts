import { execFileSync } from "node:child_process";
import { formatJson, readText } from "./generated-files.ts";

interface Component {
  readonly "bom-ref": string;
  readonly properties: readonly { readonly name: string; readonly value: string }[];
}

/** The parts of a CycloneDX document that are changed here. */
interface Sbom {
  readonly metadata: { readonly component: object };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const OPTIONS = ["--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];

/**
 * Returns the packages of package-lock.json that are installed with proxywarden, as a CycloneDX document. `npm sbom --omit dev` is not
 * used, because it also omits packages that both proxywarden and a development dependency need.
 */
function productionSbom(): Sbom {
  const { name } = JSON.parse(readText("package.json") ?? "{}") as { name: string };
  const all = JSON.parse(execFileSync("npm", ["sbom", ...OPTIONS], { encoding: "utf8" })) as Sbom;
  const components = all.components.filter(
    ({ properties }) =>
      !properties.some((each) => each.name === "cdx:npm:package:development" && each.value === "true"),
  );
  const kept = new Set(components.map((component) => component["bom-ref"]));
  const [root, ...others] = all.dependencies;
  return {
    ...all,
    // npm names it after the folder.
    metadata: { ...all.metadata, component: { ...all.metadata.component, name } },
    components,
    dependencies: [root!, ...others.filter(({ ref }) => kept.has(ref))].map((each) => ({
      ...each,
      dependsOn: each.dependsOn.filter((ref) => kept.has(ref)),
    })),
  };
}

if (import.meta.main) process.stdout.write(formatJson(productionSbom()));
