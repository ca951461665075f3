import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { decodeValue } from "../../objects/decode.js";
import { encodeValue, toLink } from "../../objects/encode.js";
import { ObjectSink } from "../../objects/sink.js";
import type { RefUpdate } from "../../refs/ref-store.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { prepareCommit } from "../write-commit.js";
import { type LeaseRecord, parseLeaseRecord } from "./record.js";

/** Who acts on a lease, and why. */
export interface LeaseNote {
  readonly actor: string;
  readonly reason: string;
}

/** The ref that holds the lease of a branch. */
export function leaseRef(branchRef: string): string {
  return branchRef.replace(/^refs\/heads\//, "refs/leases/");
}

/** The record that a lease's ref is at; null when it is free, or held in a way that this code does not know. */
export async function readLease(
  repository: Repository,
  row: RefRow | undefined,
): Promise<LeaseRecord | null> {
  if (row === undefined || row.id === null) return null;
  const commit = await repository.commits.read(row.id);
  const link = commit.root.state;
  if (link === undefined) return null;
  return parseLeaseRecord(await decodeValue(repository.objectsOf(commit), link));
}

/**
 * Moves a lease's ref to a record, or away, by compare-and-swap. Each record is a commit without parents,
 * so that one that was replaced is collected.
 *
 * @param row the ref as it must be; undefined when there must be none
 * @returns the ref as it is then; null when somebody else was faster
 */
export async function moveLease(
  repository: Repository,
  { ref, row }: { readonly ref: string; readonly row: RefRow | undefined },
  record: LeaseRecord | null,
  { actor, reason }: LeaseNote,
): Promise<RefRow | null> {
  const sink = new ObjectSink();
  const prepared =
    record === null
      ? undefined
      : prepareCommit(repository, {
          sink,
          parents: [],
          root: { state: toLink(sink, encodeValue(sink, record as unknown as JsonValue, null)) },
          author: actor,
          minStep: 1,
          options: { message: reason },
        });
  const held = row === undefined || row.id === null ? undefined : row;
  const update: RefUpdate = {
    ref,
    expect:
      held === undefined
        ? { kind: "absent" }
        : { kind: "id", id: held.id as ObjectId, seq: held.seq },
    target: prepared?.record.id ?? null,
    commits: prepared === undefined ? [] : [prepared.record],
    note: { actor, reason },
  };
  const [answer] = await repository.refs.apply({
    updates: [update],
    objects: prepared?.objects.map((object) => object.record) ?? [],
  });
  return answer?.outcome === "moved" || answer?.outcome === "landed" ? answer.row : null;
}
