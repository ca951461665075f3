import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { decodeValue } from "../../objects/decode.js";
import { encodeValue, toLink } from "../../objects/encode.js";
import type { WrittenObject } from "../../objects/sink.js";
import { ObjectSink } from "../../objects/sink.js";
import { shortRefName } from "../../refs/names.js";
import type { RefUpdate } from "../../refs/ref-store.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../../store/repository.js";
import { prepareCommit } from "../../store/write-commit.js";

/** Who writes the catalogue: never an agent, whose name might tell of a workflow. */
const AUTHOR = "agstate";

/** A record that is ready to be written under a ref that is not there yet. */
export interface NewRecord {
  readonly update: RefUpdate;
  readonly objects: readonly WrittenObject[];
}

/**
 * Makes a record of the catalogue: a commit without parents on a ref of its own, which it is created with, so that
 * records of different things never wait for each other. Writes nothing.
 *
 * @param says one line for the commit and the log
 */
export function newRecord(
  repository: Repository,
  ref: string,
  value: JsonValue,
  says: string,
): NewRecord {
  const sink = new ObjectSink();
  const { record, objects } = prepareCommit(repository, {
    sink,
    parents: [],
    root: { state: toLink(sink, encodeValue(sink, value, null)) },
    author: AUTHOR,
    minStep: 1,
    options: { message: says },
  });
  return {
    objects,
    update: {
      ref,
      expect: { kind: "absent" },
      target: record.id,
      commits: [record],
      note: { actor: AUTHOR, reason: says },
    },
  };
}

/** Reads the records that refs point to, in their order. */
export async function readRecords<T>(
  repository: Repository,
  rows: readonly RefRow[],
  parse: (value: JsonValue) => T | null,
): Promise<T[]> {
  const ids = rows.map((row) => row.id ?? removed(row));
  await repository.loadAhead(ids, ["state"], true);
  const commits = await repository.commits.readAll(ids);
  const records: T[] = [];
  for (const [i, commit] of commits.entries()) {
    const link = commit.root.state;
    const value = link && (await decodeValue(repository.objectsOf(commit), link));
    records.push((value === undefined ? null : parse(value)) ?? unreadable(rows[i] as RefRow));
  }
  return records;
}

/** A workflow lives where it was placed: a placement that somebody removed is not taken for one that never was. */
function removed({ name }: RefRow): never {
  throw new AgstateError(
    "STORE_DAMAGED",
    `${shortRefName(name)} was removed from the catalogue, where nothing is ever removed; see its log by agstate reflog, and restore the catalogue`,
    { ref: name },
  );
}

function unreadable({ name, id }: RefRow): never {
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `${shortRefName(name)} of the catalogue is at ${id}, which this version cannot read; use the version that wrote it`,
    { ref: name, id: id as ObjectId },
  );
}
