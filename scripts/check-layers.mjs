/**
 * Holds the imports under `src` against the rules of .dependency-cruiser.cjs.
 *
 * A cruiser that cannot parse TypeScript (a compiler newer than it knows, say) sees no module
 * and passes; so it must also have seen every source file, and one type-only import that is known
 * to be there.
 */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { cruise } from "dependency-cruiser";
import extractConfig from "dependency-cruiser/config-utl/extract-depcruise-config";
import extractTsConfig from "dependency-cruiser/config-utl/extract-ts-config";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const { options, ...ruleSet } = await extractConfig("./.dependency-cruiser.cjs");
const { output } = await cruise(["src"], { ...options, ruleSet, validate: true }, undefined, {
  tsConfig: extractTsConfig("./tsconfig.json"),
});

const failures = output.summary.violations.map(
  ({ rule, from, to, cycle }) =>
    `${rule.name}: ${[from, ...(cycle?.map((step) => step.name) ?? [to])].join(" -> ")}`,
);

const seen = new Map(output.modules.map((module) => [module.source, module]));
const sources = readdirSync("src", { recursive: true })
  .map((name) => `src/${name.replaceAll("\\", "/")}`)
  .filter((name) => name.endsWith(".ts"));
for (const source of sources) if (!seen.has(source)) failures.push(`not cruised: ${source}`);

const known = seen.get("src/storage/port.ts")?.dependencies.map(({ resolved }) => resolved) ?? [];
if (!known.includes("src/core/ids.ts"))
  failures.push("blind: the import of core/ids.ts in storage/port.ts was not seen");

for (const failure of failures) console.error(failure);
console.log(
  `${sources.length} modules, ${output.summary.totalDependenciesCruised} imports, ${failures.length} violations`,
);
if (failures.length > 0) process.exitCode = 1;
