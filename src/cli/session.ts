import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { AgstateError, isAgstateError } from "../core/errors.js";
import type { Limits } from "../core/limits.js";
import type { Regions } from "../residency/router/regions.js";
import type { Storage } from "../storage/port.js";
import { ageOf } from "../store/primary.js";
import type { Workflow } from "../store/workflow.js";
import { type OpenStoreOptions, openStore, type Store } from "../store.js";
import { Output, reportWarning } from "./output.js";
import { wantedOf } from "./telemetry/wanted.js";

/** The options that every command takes. */
export interface GlobalOptions {
  readonly store?: string;
  readonly regions?: string;
  readonly workflow?: string;
  readonly keys?: string;
  /** Of commands that compare or write states by a schema. */
  readonly migrations?: string;
  readonly json?: boolean;
  readonly color?: boolean;
}

const DIRECTORY = ".agstate";

/** How long a command waits for others, and for a server that is away: somebody sits before it. */
const WAIT_MS = 10_000;

/** One run of the command line: its options, its output, and the store that it opened. */
export class Session {
  readonly out: Output;
  private opened: Store | null = null;
  private routed: Regions | undefined;
  private warned = false;

  constructor(readonly options: GlobalOptions) {
    this.out = new Output(options.json === true, wantsColour(options));
  }

  /** The URL of the store: `--store`, `AGSTATE_STORE`, or the nearest `.agstate` upwards. */
  storeUrl(): string {
    const given = this.namedStore();
    if (given !== undefined) return toUrl(given);
    const found = findUpwards(process.cwd());
    if (found === null) {
      throw new AgstateError(
        "STORE_NOT_FOUND",
        `there is no ${DIRECTORY} in this directory or above; make one with agstate init, or name one with --store`,
      );
    }
    return `sqlite:${found}`;
  }

  async store(): Promise<Store> {
    if (this.regionsFile() !== undefined) throw needsStore();
    this.opened ??= await openStore(this.storeUrl(), { create: false, ...(await this.ways()) });
    await this.warnOfReplica(this.opened);
    return this.opened;
  }

  /** Says, before anything is read there, that it is a replica that is read, and how far that has come; once. */
  private async warnOfReplica(read: Pick<Store | Workflow, "readFrom">): Promise<void> {
    if (this.warned) return;
    const { replica } = await read.readFrom();
    if (replica === null) return;
    this.warned = true;
    reportWarning(`read from a replica, ${ageOf(replica)}`, this.out.json, { replica });
  }

  /** How every store is opened: with a limit to the wait, and, where nothing is exported, nobody to tell. */
  get waysOfAll(): Pick<OpenStoreOptions, "tracing" | "limits"> {
    return {
      limits: { busyTimeoutMs: WAIT_MS },
      ...(wantedOf(process.env) === null && { tracing: false as const }),
    };
  }

  /** The same, with the keys that `--keys` or `AGSTATE_KEYS` names, and the schema of `--migrations` or `AGSTATE_MIGRATIONS`. */
  private async ways(): Promise<Pick<OpenStoreOptions, "keys" | "schema" | "tracing" | "limits">> {
    const { keys, migrations } = this.options;
    const ways = { ...this.waysOfAll, ...(await schemaIn(migrations)) };
    if (keys === undefined) return ways;
    const { keysFrom } = await import("../keys/source.js");
    return { ...ways, keys: { provider: keysFrom(keys, process.env) } };
  }

  /** Where `init` makes a store when none is named: `.agstate` here. */
  newStoreUrl(): string {
    const given = this.namedStore();
    return given === undefined ? `sqlite:${join(process.cwd(), DIRECTORY)}` : toUrl(given);
  }

  /** The store that a command on one store names, which a file of regions must not stand in for. */
  private namedStore(): string | undefined {
    const given = this.options.store || process.env.AGSTATE_STORE;
    const { regions } = this.options;
    if (given === undefined || given === "") {
      if (regions === undefined) return undefined;
      throw needsStore();
    }
    // One in the environment is for all commands, also for those that it does not concern.
    if (regions !== process.env.AGSTATE_REGIONS) this.regionsFile();
    return given;
  }

  /** The file of regions that `--regions` or `AGSTATE_REGIONS` names, by which workflows' stores are found. */
  private regionsFile(): string | undefined {
    const { regions, store } = this.options;
    if (regions === undefined) return undefined;
    if (regions === "") {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "--regions, or AGSTATE_REGIONS, is empty; name a file of regions, or leave it out",
      );
    }
    if (store !== undefined && store !== "") {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "a store (--store or AGSTATE_STORE) and regions (--regions or AGSTATE_REGIONS) are both given; give one of them",
      );
    }
    return regions;
  }

  /** The regions, when a file of them is named; no store is opened yet. */
  async regions(limits?: Partial<Limits>): Promise<Regions | undefined> {
    const file = this.regionsFile();
    if (file === undefined) return undefined;
    // Loaded here, as commands without regions should not wait for it.
    const { openRegions } = await import("../residency/router/regions.js");
    this.routed ??= await openRegions(file, {
      environment: process.env,
      ...(await this.ways()),
      ...(limits && { limits }),
    });
    return this.routed;
  }

  /** The regions, for a command that is about them. */
  async namedRegions(limits?: Partial<Limits>): Promise<Regions> {
    const regions = await this.regions(limits);
    if (regions !== undefined) return regions;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "no file of regions is named; name one with --regions FILE, or in AGSTATE_REGIONS",
    );
  }

  /** The store to import into: the one that `store` finds, or, where there is none, a new one here. */
  async storeForImport(): Promise<{ store: Store; created: string | null }> {
    try {
      return { store: await this.store(), created: null };
    } catch (error) {
      if (!isAgstateError(error, "STORE_NOT_FOUND")) throw error;
      this.opened = await openStore(this.newStoreUrl(), await this.ways());
      return { store: this.opened, created: (await this.opened.describe()).location };
    }
  }

  /** The workflow that `-w` or `AGSTATE_WORKFLOW` names. */
  namedWorkflow(): string | undefined {
    const given = this.options.workflow ?? process.env.AGSTATE_WORKFLOW;
    return given === "" ? undefined : given;
  }

  /** The workflow: the named one, or the only one of the store, or of all regions. */
  async workflow(named = this.namedWorkflow()): Promise<Workflow> {
    const holder = (await this.regions()) ?? (await this.store());
    const open = async (id: string) => {
      const workflow = await holder.workflow(id);
      await this.warnOfReplica(workflow);
      return workflow;
    };
    if (named !== undefined) return open(named);
    const ids: string[] = [];
    for await (const id of this.workflowIds()) {
      ids.push(id);
      if (ids.length > 1) break;
    }
    if (ids.length === 1) return open(ids[0] as string);
    const where = holder === this.routed ? "the catalogue of regions" : "the store";
    throw new AgstateError(
      ids.length === 0 ? "WORKFLOW_NOT_FOUND" : "INVALID_ARGUMENT",
      ids.length === 0
        ? `${where} has no workflow yet; make one with agstate workflow create NAME`
        : `${where} has several workflows; choose one with -w NAME (agstate workflow list shows them)`,
    );
  }

  /** The named workflow, or all that there are: of the store, or of every region. */
  async *workflows(): AsyncGenerator<Workflow, void, undefined> {
    if (this.namedWorkflow() !== undefined) return yield await this.workflow();
    for await (const id of this.workflowIds()) {
      const workflow = await orUnfinished(this.workflow(id));
      if (workflow !== undefined) yield workflow;
    }
  }

  /** The storage of the named workflow, or all that there is: the store's, or that of every region. */
  async *storages(): AsyncGenerator<
    Pick<Storage, "checkStructure" | "compact" | "describe">,
    void,
    undefined
  > {
    const regions = await this.regions();
    if (regions === undefined) return yield await this.store();
    if (this.namedWorkflow() !== undefined) return yield (await this.workflow()).internals.storage;
    for (const { name } of await regions.regions()) {
      const store = await regions.store(name);
      await this.warnOfReplica(store);
      yield store;
    }
  }

  private async *workflowIds(): AsyncGenerator<string, void, undefined> {
    const regions = await this.regions();
    if (regions === undefined) {
      for await (const { id } of (await this.store()).workflows()) yield id;
    } else {
      for await (const { workflow } of regions.workflows()) yield workflow;
    }
  }

  async close(): Promise<void> {
    await this.opened?.close();
    await this.routed?.close();
  }
}

async function schemaIn(file: string | undefined): Promise<Pick<OpenStoreOptions, "schema">> {
  if (file === undefined) return {};
  const { readSchemaFile } = await import("./schema-file.js");
  return { schema: await readSchemaFile(file) };
}

function needsStore(): AgstateError {
  return new AgstateError(
    "INVALID_ARGUMENT",
    "this command works on one store, not on regions; name it with --store, and leave out --regions (AGSTATE_REGIONS)",
  );
}

/** A workflow that has a place in the catalogue, and whose creation has not come to its end, has nothing to be looked at. */
async function orUnfinished(workflow: Promise<Workflow>): Promise<Workflow | undefined> {
  try {
    return await workflow;
  } catch (error) {
    if (isAgstateError(error) && error.details.unfinished === true) return undefined;
    throw error;
  }
}

/** The URL of a store that is given as one, or as a directory. */
export function toUrl(given: string): string {
  if (/^[a-z]+:/.test(given)) return given;
  return `sqlite:${resolve(given)}`;
}

function findUpwards(from: string): string | null {
  for (let at = from; ; at = dirname(at)) {
    const candidate = join(at, DIRECTORY);
    if (existsSync(candidate)) return candidate;
    if (dirname(at) === at) return null;
  }
}

/** Colour only on a terminal, never with `--no-color` or `NO_COLOR`, always with `FORCE_COLOR`. */
function wantsColour(options: GlobalOptions): boolean {
  if (options.color === false) return false;
  const { NO_COLOR = "", FORCE_COLOR = "" } = process.env;
  if (NO_COLOR !== "" || FORCE_COLOR === "0") return false;
  if (FORCE_COLOR !== "") return true;
  return process.stdout.isTTY === true && process.env.TERM !== "dumb";
}

/** The user's name on this computer, for what must name somebody. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch (cause) {
    // A user id without an entry, as in some containers.
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "this computer does not say who you are; name yourself with --actor",
      {},
      { cause },
    );
  }
}
