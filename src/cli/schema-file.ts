import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Option } from "commander";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { SchemaOption } from "../store/schema/schema.js";

/** The option of commands that compare or write states by a schema. Commands that only read show what is stored. */
export function migrationsOption(): Option {
  return new Option(
    "--migrations <file>",
    "an ES module that exports the state's version and migrations",
  ).env("AGSTATE_MIGRATIONS");
}

/**
 * Loads the schema of an ES module: its default export, or what it exports as `version` and `migrations`.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export async function readSchemaFile(file: string): Promise<SchemaOption> {
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(typeof error);
    const [says = ""] = message.replace(/ imported from .*$/s, "").split("\n");
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot load the migrations ${quoteForMessage(file)}: ${name}: ${says}`,
      { file },
      { cause: error },
    );
  }
  const { default: schema, version, migrations = {} } = module;
  if (schema !== undefined) return schema as SchemaOption;
  if (version !== undefined) return { version, migrations } as SchemaOption;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the module ${quoteForMessage(file)} exports no version; it exports version, the state's newest, and migrations, such as { 1: (state) => ... }`,
    { file },
  );
}
