import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { onTestFinished } from "vitest";
import {
  type OpenRegionsOptions,
  openRegions,
  openStore,
  type RegionConfig,
  type Regions,
  type RegionsConfig,
  type Storage,
} from "../../src/index.js";
import { schemaOf, withClient } from "./postgres.js";

export const ALL = ["public", "internal", "sensitive", "regulated"] as const;

/** Stores of regions, and of the catalogue, that the running test owns. */
export interface Ground {
  readonly directory: string;
  readonly config: RegionsConfig & { readonly regions: Record<string, RegionConfig> };
  /** Opens the regions as a newcomer does; `writes` is what any storage was asked to write since. */
  open(options?: OpenRegionsOptions, config?: RegionsConfig): Promise<Opened>;
  /** All bytes, or rows, of every store. */
  contents(): Promise<Record<string, string>>;
}

export interface Opened {
  readonly regions: Regions;
  /** Where something was written, in order: `eu`, `catalogue`. */
  readonly writes: string[];
}

/**
 * Makes a catalogue and a store for each region.
 *
 * @param stores URLs of those that are not to be SQLite directories
 */
export async function makeGround(
  names: readonly string[] = ["eu", "us"],
  stores: Readonly<Record<string, string>> = {},
): Promise<Ground> {
  const directory = mkdtempSync(join(tmpdir(), "agstate-regions-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const urlOf = (name: string) => stores[name] ?? `sqlite:${join(directory, name)}`;
  const regions: Record<string, RegionConfig> = {};
  for (const name of names) {
    await (await openStore(urlOf(name), { region: name })).close();
    regions[name] = { store: urlOf(name), classifications: ALL };
  }
  await (await openStore(urlOf("catalogue"))).close();
  const config = { catalogue: urlOf("catalogue"), regions };
  return {
    directory,
    config,
    open: async (options = {}, other = config) => {
      const writes: string[] = [];
      const opened = await openRegions(other, {
        ...options,
        wrap: (storage, region) => {
          const inner = options.wrap?.(storage, region) ?? storage;
          return noting(inner, () => writes.push(region ?? "catalogue"));
        },
      });
      onTestFinished(() => opened.close());
      return { regions: opened, writes };
    },
    contents: async () => ({
      ...filesOf(directory),
      ...Object.assign({}, ...(await Promise.all(Object.values(stores).map(rowsOf)))),
    }),
  };
}

/** Tells of every call that could change something. */
function noting(storage: Storage, note: () => void): Storage {
  return new Proxy(storage, {
    get: (target, key, receiver) => {
      const member = Reflect.get(target, key, receiver);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (["write", "condemn", "sweep", "redact"].includes(String(key))) note();
        return member.apply(target, args);
      };
    },
  });
}

/** The digest of every file, without what SQLite shares between processes only while they run. */
function filesOf(directory: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.endsWith("-shm")) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    // A log that nothing was written to comes and goes with whoever opens the store.
    if (bytes.length > 0) files[path] = createHash("sha256").update(bytes).digest("hex");
  }
  return files;
}

/** The digest of every table of a schema. */
function rowsOf(url: string): Promise<Record<string, string>> {
  return withClient(async (client) => {
    const schema = schemaOf(url);
    const { rows } = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE quote_ident(schemaname) = $1 ORDER BY 1",
      [schema],
    );
    const tables: Record<string, string> = {};
    for (const { name } of rows) {
      const table = `${schema}.${pg.escapeIdentifier(name)}`;
      const answer = await client.query<{ digest: string }>(
        `SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, '' ORDER BY t::text)), '') AS digest FROM ${table} t`,
      );
      tables[table] = answer.rows[0]?.digest as string;
    }
    return tables;
  });
}

/** Writes a regions file into the ground's folder. */
export function writeRegionsFile(
  directory: string,
  config: unknown,
  name = "regions.json",
): string {
  const path = join(directory, name);
  writeFileSync(path, typeof config === "string" ? config : JSON.stringify(config, null, 2));
  return path;
}

/** A variable as a regions file has it. */
export function variable(name: string): string {
  return `$\{${name}}`;
}
