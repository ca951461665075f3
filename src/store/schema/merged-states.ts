import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { MergedStates } from "../../merge/merge-commits.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Link } from "../../objects/encode.js";
import type { WrittenObject } from "../../objects/sink.js";
import type { Repository } from "../repository.js";
import type { CheckedSchema } from "./schema.js";

/** States of one version, which whatever is merged of them is of, too. */
export interface VersionedStates extends MergedStates {
  /** Undefined where nobody said one. */
  readonly version: number | undefined;
  /** The version that a commit's state was migrated from to be merged; null when it was not. */
  migratedFrom(commit: LoadedCommit): number | null;
}

/** The states that a merge compares: brought to the schema's version, or, without a schema, as they are stored. */
export function statesToMerge(repository: Repository): VersionedStates {
  const { schema } = repository;
  return schema === null ? new StoredStates() : new MigratedStates(repository, schema);
}

const NOTHING: ReadonlyMap<ObjectId, WrittenObject> = new Map();

/** States as they are stored, which all must be of the version of the first. */
class StoredStates implements VersionedStates {
  readonly made = NOTHING;
  private first: LoadedCommit | undefined;

  get version(): number | undefined {
    return this.first?.stateVersion;
  }

  /** @throws AgstateError `SCHEMA_NEEDED` */
  of(commit: LoadedCommit): Link | undefined {
    const { state } = commit.root;
    if (state === undefined) return undefined;
    this.first ??= commit;
    if (commit.stateVersion !== this.first.stateVersion) throw differ(this.first, commit);
    return state;
  }

  migratedFrom(): null {
    return null;
  }
}

/** States that are brought to the schema's version. */
class MigratedStates implements VersionedStates {
  readonly made = new Map<ObjectId, WrittenObject>();
  readonly version: number;
  private readonly links = new Map<ObjectId, Link>();

  constructor(
    private readonly repository: Repository,
    private readonly schema: CheckedSchema,
  ) {
    this.version = schema.version;
  }

  /** @throws AgstateError `MIGRATION_FAILED`, `STATE_TOO_NEW` */
  of(commit: LoadedCommit): Link | undefined | Promise<Link> {
    const from = this.schema.migratesFrom(commit);
    return from === null
      ? commit.root.state
      : (this.links.get(commit.id) ?? this.migrate(commit, from));
  }

  migratedFrom(commit: LoadedCommit): number | null {
    return this.schema.migratesFrom(commit);
  }

  private async migrate(commit: LoadedCommit, from: number): Promise<Link> {
    const { repository, made } = this;
    const { encodeMigrated } = await import("./states.js");
    const older = { repository, commit, from, reader: repository.objectsOf(commit) };
    const { link, sink } = await repository.keys.encoding(async () => {
      const fresh = repository.newSink();
      return { link: await encodeMigrated(older, fresh), sink: fresh };
    });
    // What an edit of the draft undid is of no use to anybody.
    sink.keepReachable([link.id]);
    for (const object of sink.all()) made.set(object.record.id, object);
    this.links.set(commit.id, link);
    return link;
  }
}

function differ(one: LoadedCommit, other: LoadedCommit): AgstateError {
  const said = ({ stateVersion }: LoadedCommit) =>
    stateVersion === undefined ? "of no version that is said" : `of version ${stateVersion}`;
  return new AgstateError(
    "SCHEMA_NEEDED",
    `the state of commit ${one.id} is ${said(one)} and that of ${other.id} ${said(other)}: as they are stored they cannot be compared; merge them with the schema that they were written by (openStore's schema, or --migrations FILE)`,
    {
      commits: [one.id, other.id],
      versions: [one.stateVersion ?? null, other.stateVersion ?? null],
    },
  );
}
