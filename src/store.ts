import { randomBytes } from "node:crypto";
import { AgstateError } from "./core/errors.js";
import { type Limits, resolveLimits } from "./core/limits.js";
import { checkIdentity } from "./core/names.js";
import type { StepHooks } from "./core/step-hooks.js";
import { NO_TELEMETRY, type Telemetry } from "./core/telemetry.js";
import { Governance, type GovernancePolicy } from "./governance/policy.js";
import type { CustomResolvers } from "./merge/resolvers.js";
import { parseDataPolicy } from "./objects/data-policy.js";
import { digestText, hashObject, hasId } from "./objects/hash.js";
import { workflowNotFound } from "./refs/ref-store.js";
import type { ForeignRegions } from "./residency/foreign.js";
import type { Checkers } from "./staleness/types.js";
import type {
  BackendOptions,
  Compacted,
  Storage,
  StoreDescription,
  WorkflowRecord,
} from "./storage/port.js";
import type { RoleNames } from "./storage/postgres/roles.js";
import { recordRefused } from "./store/audit/refused.js";
import { landWorkflow, prepareWorkflow } from "./store/create.js";
import { KeyChain } from "./store/keys/chain.js";
import { checkKeyOptions, type KeyOptions } from "./store/keys/options.js";
import { livesElsewhere, placedParts } from "./store/placed.js";
import { mustBePrimary, type ReadFrom, readFrom, refuseReplica } from "./store/primary.js";
import { createStoreContext, type StoreContext } from "./store/repository.js";
import { type SchemaOption, schemasOf } from "./store/schema/schema.js";
import type { CreateWorkflowOptions, WorkflowInfo } from "./store/types.js";
import { unknownStore } from "./store/unknown-store.js";
import { toWorkflowInfo } from "./store/views.js";
import { Workflow } from "./store/workflow.js";
import type { TracingOptions } from "./tracing/open-telemetry.js";

export interface OpenStoreOptions {
  /** Makes the store when it does not exist; default true. */
  readonly create?: boolean;
  /** The region that a new store stands in; an existing one must be of this region. */
  readonly region?: string;
  readonly limits?: Partial<Limits>;
  /** What merge policies of the form `custom:<name>` stand for. */
  readonly resolvers?: CustomResolvers;
  /**
   * Which version of the state this code reads and writes, and how older states become it: of all workflows, or for each
   * what a function answers. What is read, merged and written is of that version then.
   */
  readonly schema?: SchemaOption | undefined;
  /** Take part in every step of the store's workflows, in this order. */
  readonly stepHooks?: readonly StepHooks[];
  /** The tables of a PostgreSQL store are distributed by workflow (`?distributed=true` says the same); default false. */
  readonly distributed?: boolean;
  /** What tools may do, by rules: a policy as JSON, which `readGovernanceFile` reads from a file. */
  readonly governance?: GovernancePolicy;
  /** Encrypts workflows: who holds the keys that wrap theirs, and which are encrypted. */
  readonly keys?: KeyOptions | undefined;
  /**
   * What OpenTelemetry is told, by whatever SDK the process has registered; `false` for nothing. Default: spans and
   * measurements without any payload.
   */
  readonly tracing?: TracingOptions | false | undefined;
  /** What is asked whether resources have changed that steps and hand-offs rely on, by type; `createCheckers` makes the usual ones. */
  readonly checkers?: Checkers | undefined;
  /** Puts a decorator of the caller's around the storage, such as one that counts. */
  readonly wrap?: (storage: Storage) => Storage;
  /** @internal What `openRegions` gives to the stores that it opens. */
  readonly foreign?: ForeignRegions;
}

/**
 * Opens a store: `sqlite:DIRECTORY` (the embedded one; `sqlite:.agstate` is the
 * usual place), `postgres://USER@HOST/DATABASE?schema=NAME` (a schema of a
 * PostgreSQL database; default `agstate`), or `memory:` (gone with the process).
 *
 * @throws AgstateError `STORE_NOT_FOUND`, `STORE_TOO_NEW`, `STORE_DAMAGED`, `STORE_MISMATCH`, `STORE_READONLY`, `INVALID_ARGUMENT`
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const limits = resolveLimits(options.limits);
  if (options.region !== undefined) checkIdentity("region", options.region);
  const governance =
    options.governance === undefined ? undefined : new Governance(options.governance);
  const keys = options.keys && checkKeyOptions(options.keys);
  const schemaOf = schemasOf(options.schema);
  const telemetry = await telemetryOf(options);
  const storage = await openBackend(url, options, limits, telemetry);
  const wrapped = options.wrap?.(storage) ?? storage;
  return new Store(
    createStoreContext({
      storage: wrapped,
      limits,
      now: Date.now,
      randomHex,
      resolvers: options.resolvers ?? {},
      schemaOf,
      hooks: options.stepHooks ?? [],
      governance,
      keys: new KeyChain({ storage: wrapped, keys }),
      foreign: options.foreign,
      checkers: options.checkers,
      refused: recordRefused,
      telemetry,
    }),
  );
}

async function telemetryOf({ tracing = {} }: OpenStoreOptions): Promise<Telemetry> {
  if (tracing === false) return NO_TELEMETRY;
  const { OpenTelemetry } = await import("./tracing/open-telemetry.js");
  return new OpenTelemetry(tracing);
}

async function openBackend(
  url: string,
  options: OpenStoreOptions,
  limits: Limits,
  telemetry: Telemetry,
): Promise<Storage> {
  const { verifying } = await import("./storage/decorators/verifying.js");
  const backend: BackendOptions = { digest: digestText, now: Date.now, randomHex, telemetry };
  const colon = url.indexOf(":");
  const region = options.region === undefined ? {} : { region: options.region };
  if (options.distributed && !/^postgres(?:ql)?:/.test(url)) {
    throw onlyOnServer(url, "can be distributed");
  }
  switch (url.slice(0, colon + 1)) {
    case "memory:": {
      const { createMemoryStorage } = await import("./storage/memory/memory-storage.js");
      return verifying(createMemoryStorage(backend, options.region), verifyObject);
    }
    case "sqlite:": {
      const { openSqliteStorage } = await import("./storage/sqlite/open.js");
      const storage = await openSqliteStorage({
        ...backend,
        ...region,
        path: url.slice(colon + 1) || ".agstate",
        create: options.create ?? true,
        busyTimeoutMs: limits.busyTimeoutMs,
        graceMs: limits.graceMs,
      });
      return verifying(storage, verifyObject);
    }
    case "postgres:":
    case "postgresql:": {
      const { openPostgresStorage } = await import("./storage/postgres/open.js");
      const storage = await openPostgresStorage({
        ...backend,
        ...region,
        url,
        create: options.create ?? true,
        busyTimeoutMs: limits.busyTimeoutMs,
        graceMs: limits.graceMs,
        distributed: options.distributed,
        poolMax: limits.poolMax,
        statementTimeoutMs: limits.statementTimeoutMs,
      });
      return verifying(storage, verifyObject);
    }
    default:
      throw unknownStore(url);
  }
}

/** Where a store's schema stands. */
export interface MigrationReport {
  readonly backend: string;
  readonly location: string;
  /** Migrations that it had. */
  readonly applied: readonly string[];
  /** Those that it lacked; it has them now, unless it was a dry run. */
  readonly pending: readonly string[];
}

export interface MigrateStoreOptions {
  /** Changes nothing. */
  readonly dryRun?: boolean;
  readonly region?: string;
  /** Also makes the roles of least privilege on a PostgreSQL server, by default names where none is given. */
  readonly roles?: boolean | Partial<RoleNames>;
  /** Also distributes the tables of a PostgreSQL store over the workers of Citus. */
  readonly distributed?: boolean;
}

function onlyOnServer(url: string, what: string): AgstateError {
  const scheme = url.slice(0, url.indexOf(":") + 1);
  return new AgstateError(
    "INVALID_ARGUMENT",
    `only a store on a PostgreSQL server ${what}, not one of ${scheme}; name one by postgres://...`,
    { scheme },
  );
}

/**
 * Brings a store's schema up to date, or tells what is to be done.
 *
 * A PostgreSQL schema that is not there is made. An embedded store is brought up
 * to date whenever it is opened.
 *
 * @throws AgstateError `STORE_TOO_NEW`, and what `openStore` throws
 */
export async function migrateStore(
  url: string,
  options: MigrateStoreOptions = {},
): Promise<MigrationReport> {
  const { dryRun = false, region, roles, distributed = false } = options;
  if (/^postgres(?:ql)?:/.test(url)) {
    const { migratePostgres } = await import("./storage/postgres/open.js");
    const { checkRoleNames, DEFAULT_ROLES } = await import("./storage/postgres/roles.js");
    const { busyTimeoutMs, graceMs } = resolveLimits();
    const backend = { digest: digestText, now: Date.now, randomHex };
    const target = { ...backend, url, busyTimeoutMs, graceMs, region };
    const setup = {
      ...(roles && {
        roles: checkRoleNames({ ...DEFAULT_ROLES, ...(roles === true ? {} : roles) }),
      }),
      ...(distributed && { distributed }),
    };
    if (dryRun && Object.keys(setup).length > 0)
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "a dry run neither gives rights nor distributes; leave out either dryRun or roles and distributed",
        {},
      );
    return { backend: "postgres", ...(await migratePostgres(target, dryRun, setup)) };
  }
  if (roles) throw onlyOnServer(url, "has roles");
  if (distributed) throw onlyOnServer(url, "can be distributed");
  const store = await openStore(url, { create: false });
  const { backend, location } = await store.describe();
  await store.close();
  return { backend, location, applied: [], pending: [] };
}

function verifyObject(type: "blob" | "tree" | "commit", id: string, body: Uint8Array): void {
  if (!hasId(type, body, id)) {
    const actual = hashObject(type, body);
    throw new AgstateError(
      "CORRUPT_OBJECT",
      `${type} ${id} is corrupt: its bytes hash to ${actual}; run agstate fsck to see what it affects`,
      { id, expected: id, actual },
    );
  }
}

/** @internal Random bytes as hex digits, drawn from the system in larger portions. */
export function randomHex(bytes: number): string {
  if (pool.offset + bytes > pool.bytes.length) {
    pool.bytes = randomBytes(4096);
    pool.offset = 0;
  }
  const hex = pool.bytes.toString("hex", pool.offset, pool.offset + bytes);
  pool.offset += bytes;
  return hex;
}

const pool = { bytes: Buffer.alloc(0), offset: 0 };

/** An open store: a catalogue of workflows. */
export class Store {
  /** @internal Use `openStore`. */
  constructor(private readonly context: StoreContext) {}

  /**
   * Creates a workflow: its catalogue row, the genesis commit that holds its
   * declarations, and the first commit of `canonical`, in one write.
   *
   * @throws AgstateError `WORKFLOW_EXISTS`, `INVALID_NAME`, `INVALID_VALUE`, `INVALID_ARGUMENT`, `INVALID_PATH`, `KEY_UNAVAILABLE`
   */
  async createWorkflow(id: string, options: CreateWorkflowOptions = {}): Promise<Workflow> {
    const land = await this.prepareWorkflow(id, options);
    return land();
  }

  /**
   * Checks all that creating a workflow checks, and gives what creates it; writes nothing before that is called.
   *
   * @internal For the router of regions, which has to know that nothing is wrong before it writes elsewhere.
   * @param defaulted which declarations a file of defaults made, not the caller
   */
  async prepareWorkflow(
    id: string,
    options: CreateWorkflowOptions,
    defaulted: readonly string[] = [],
  ): Promise<() => Promise<Workflow>> {
    const description = await this.context.storage.describe();
    refuseReplica(description, "create a workflow");
    const { region } = description;
    const prepared = await prepareWorkflow(this.context, id, options, { region, defaulted });
    return async () => {
      await landWorkflow(prepared);
      const { keys, placed } = prepared.repository;
      return new Workflow(this.context, prepared.record, keys, placed);
    };
  }

  /**
   * Opens a workflow.
   *
   * @throws AgstateError `WORKFLOW_NOT_FOUND`, `INVALID_NAME`; `KEY_UNAVAILABLE` when who holds its key fails
   */
  async workflow(id: string): Promise<Workflow> {
    checkIdentity("workflow id", id);
    const record = await this.context.storage.readWorkflow(id);
    if (record === undefined) throw workflowNotFound(id);
    const { home, placement } = parseDataPolicy(record.isolation);
    if (home !== undefined) throw livesElsewhere(id, home);
    const { keys, foreign } = this.context;
    const before = keys.known(id)?.withheld;
    const own = await keys.open(record);
    // What was read before may be told now, or not any more.
    if (before !== undefined && before !== own.withheld) this.context.forget();
    return new Workflow(this.context, record, own, placedParts(own, placement, foreign));
  }

  /** Lists the workflows in the order of their ids; those that only have payloads here live elsewhere. */
  async *workflows(): AsyncGenerator<WorkflowInfo, void, undefined> {
    let after: string | undefined;
    for (;;) {
      const page = await this.context.storage.readWorkflows({
        limit: CATALOGUE_PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const record of page)
        if (parseDataPolicy(record.isolation).home === undefined) yield toWorkflowInfo(record);
      if (page.length < CATALOGUE_PAGE) return;
      after = (page.at(-1) as WorkflowRecord).id;
    }
  }

  /** What the store is: backend, place, schema, identity, region; and how far it has come, where it is a replica. */
  describe(): Promise<StoreDescription> {
    return this.context.storage.describe();
  }

  /** Where reads come from: see `workflow.readFrom`. */
  readFrom(): Promise<ReadFrom> {
    return readFrom(this.context.storage);
  }

  /** Asks the backend to check its own files; an empty answer means sound. */
  checkStructure(): Promise<{ what: string; detail: string }[]> {
    return this.context.storage.checkStructure();
  }

  /**
   * Gives back the space of what collection, retention and erasure have removed, of all workflows. On SQLite others
   * wait while the file is written anew; on PostgreSQL each table is locked for all while it is.
   *
   * @throws AgstateError `STORE_BUSY`, `STORE_FULL`, `STORE_READONLY`
   */
  async compact(): Promise<Compacted> {
    await mustBePrimary(this.context.storage, "give back space");
    return this.context.storage.compact();
  }

  /**
   * Lands what handles have gathered, waits for writes under way and closes the store; calling it again
   * does nothing.
   *
   * @throws AgstateError `REF_CONFLICT` when gathered commits are lost; the store is closed then, too
   */
  async close(): Promise<void> {
    const landings = await Promise.allSettled([...this.context.gathering].map((land) => land()));
    await this.context.storage.close();
    for (const landing of landings) if (landing.status === "rejected") throw landing.reason;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const CATALOGUE_PAGE = 500;
