import { AgstateError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { quoteForMessage } from "../../core/names.js";
import { STATE_VERSION_MAX } from "../../objects/commit.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";

/**
 * Makes a state of one version a state of the next. It is synchronous, and pure: the same state gives the same answer,
 * on whatever machine, since merges compare what it gives. The state that it is given is its own, to be changed or not.
 */
export type StateMigration = (state: JsonValue) => unknown;

/** What version of the state a program reads and writes, and how older states become it. */
export interface StateSchema {
  /** From 1. It rises by 1 whenever the shape of the state changes. */
  readonly version: number;
  /**
   * By the version that each takes: `migrations[1]` makes a state of version 1 one of version 2. A state of which nobody said
   * a version counts as version 1, unless there is a `migrations[0]`.
   */
  readonly migrations: Readonly<Record<number, StateMigration>>;
}

/** The schema of all workflows, or of each the one that a function answers; undefined for a workflow without. */
export type SchemaOption = StateSchema | ((workflow: string) => StateSchema | undefined);

/**
 * Checks a schema that is for all workflows now, one of a single workflow when that is opened.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function schemasOf(
  given: SchemaOption | undefined,
): (workflow: string) => CheckedSchema | undefined {
  if (typeof given !== "function") {
    const schema = given && new CheckedSchema(given, "the schema");
    return () => schema;
  }
  const known = new WeakMap<StateSchema, CheckedSchema>();
  return (workflow) => {
    const schema = given(workflow);
    if (schema === undefined) return undefined;
    const whose = `the schema of workflow ${quoteForMessage(workflow)}`;
    const checked = known.get(schema) ?? new CheckedSchema(schema, whose);
    known.set(schema, checked);
    return checked;
  };
}

/** A schema whose migrations lead from the first version to its own without a hole. */
export class CheckedSchema {
  readonly version: number;
  private readonly migrations: readonly StateMigration[];
  /** The version of a state of which nobody said one. */
  private readonly unsaid: 0 | 1;

  /** @throws AgstateError `INVALID_ARGUMENT` */
  constructor(given: StateSchema, whose: string) {
    const { version, migrations = {} } = isRecord(given) ? given : refuse(whose, "is no object");
    if (!Number.isSafeInteger(version) || version < 1 || version > STATE_VERSION_MAX) {
      refuse(
        `the version of ${whose}`,
        `is ${shown(version)}; it is a whole number from 1 to ${STATE_VERSION_MAX}`,
      );
    }
    if (!isRecord(migrations)) refuse(`migrations of ${whose}`, "is no object");
    for (const [key, migration] of Object.entries(migrations)) {
      const name = `migrations[${quoteForMessage(key)}] of ${whose}`;
      if (!/^(0|[1-9][0-9]{0,8})$/.test(key)) {
        refuse(name, "is not named by the version that it takes, such as migrations[1]");
      }
      if (Number(key) >= version) {
        refuse(name, `leads beyond version ${version}; raise the version, or leave it out`);
      }
      if (typeof migration !== "function") refuse(name, "is no function");
    }
    this.version = version;
    this.unsaid = Object.hasOwn(migrations, 0) ? 0 : 1;
    const chain: StateMigration[] = [];
    for (let from = this.unsaid as number; from < version; from++) {
      const migration = Object.hasOwn(migrations, from) ? migrations[from] : undefined;
      chain.push(
        migration ??
          refuse(
            whose,
            `lacks migrations[${from}], which makes a state of version ${from} one of ${from + 1}`,
          ),
      );
    }
    this.migrations = chain;
  }

  /** The version that a commit's state has. */
  versionOf({ stateVersion }: Pick<LoadedCommit, "stateVersion">): number {
    return stateVersion ?? this.unsaid;
  }

  /**
   * The version from which a commit's state has to be migrated; null when it is of the schema's version, or there is none.
   *
   * @throws AgstateError `STATE_TOO_NEW`
   */
  migratesFrom(commit: LoadedCommit): number | null {
    if (commit.root.state === undefined) return null;
    const version = this.versionOf(commit);
    if (version > this.version) throw tooNew(commit, version, this.version);
    return version < this.version ? version : null;
  }

  /** The migration that takes a state of a version. */
  migration(from: number): StateMigration {
    return this.migrations[from - this.unsaid] as StateMigration;
  }
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : `no number but of type ${typeof value}`;
}

function refuse(what: string, problem: string): never {
  throw new AgstateError("INVALID_ARGUMENT", `${what} ${problem}`, { field: "schema" });
}

function tooNew({ id, workflow }: LoadedCommit, version: number, known: number): AgstateError {
  return new AgstateError(
    "STATE_TOO_NEW",
    `the state of commit ${id} is of version ${version}, and the schema that the store was opened with knows it up to ${known}; go on with the code that wrote it, or with newer code`,
    { workflow, commit: id, version, known },
  );
}
