import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import {
  type CommitRecord,
  ENCODING,
  type ObjectRecord,
  type ObjectType,
  type Storage,
} from "../port.js";
import { forward } from "./forward.js";

/** Throws `CORRUPT_OBJECT`, with expected and actual id, unless the body hashes to the id. */
export type Verify = (type: ObjectType | "commit", id: ObjectId, body: Uint8Array) => void;

/**
 * Checks every object and commit against its id, when written and when read.
 *
 * The one place where this happens. Tombstones pass: they have no bytes left to
 * check. Scans are not checked, so that fsck sees damage instead of an error.
 *
 * @throws AgstateError `CORRUPT_OBJECT`; `UNSUPPORTED_ENCODING` for a body of which this version does not know what it is
 */
export function verifying(storage: Storage, verify: Verify): Storage {
  function checkObject(object: ObjectRecord): void {
    const encoding = object.encoding ?? ENCODING.plain;
    const known = object.type === "blob" ? HASHED : [ENCODING.plain];
    if (!known.includes(encoding)) {
      throw new AgstateError(
        "UNSUPPORTED_ENCODING",
        `object ${object.id}, a ${object.type}, has encoding ${encoding}; this version knows only ${known.join(", ")} there, use a newer agstate`,
        { id: object.id, encoding },
      );
    }
    verify(object.type, object.id, object.body);
  }

  function checkCommit(commit: CommitRecord): void {
    verify("commit", commit.id, commit.body);
    for (const object of commit.inline) if (!("tombstone" in object)) checkObject(object);
  }

  const below = storage.readBelow?.bind(storage);
  return {
    ...forward(storage),
    ...(below && {
      // What is bad is left out: whoever needs it asks again, and only then it is an error.
      async readBelow(workflow, request) {
        const { commits, objects } = await below(workflow, request);
        return {
          commits: commits.filter((commit) => passes(() => checkCommit(commit))),
          objects: objects.filter((o) => "tombstone" in o || passes(() => checkObject(o))),
        };
      },
    }),
    write(batch) {
      try {
        for (const object of batch.objects) checkObject(object);
        for (const move of batch.moves) for (const commit of move.commits) checkCommit(commit);
      } catch (error) {
        return Promise.reject(error);
      }
      return storage.write(batch);
    },
    async readObjects(workflow, ids) {
      const objects = await storage.readObjects(workflow, ids);
      for (const object of objects) {
        if (object !== undefined && !("tombstone" in object)) checkObject(object);
      }
      return objects;
    },
    async readHead(workflow, ref) {
      const head = await storage.readHead(workflow, ref);
      if (head?.commit !== undefined) checkCommit(head.commit);
      return head;
    },
    async readCommits(workflow, ids) {
      const commits = await storage.readCommits(workflow, ids);
      for (const commit of commits) if (commit !== undefined) checkCommit(commit);
      return commits;
    },
  };
}

/** Encodings of blobs whose bytes hash to the id. */
const HASHED: readonly number[] = [ENCODING.plain, ENCODING.pointer, ENCODING.encrypted];

/** Whether a check does not throw, which it does of agstate's errors only. */
function passes(check: () => void): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (isAgstateError(error, "CORRUPT_OBJECT", "UNSUPPORTED_ENCODING")) return false;
    throw error;
  }
}
