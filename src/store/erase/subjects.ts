import { AgstateError, isAgstateError } from "../../core/errors.js";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import { decodeAt } from "../../objects/decode.js";
import type { ObjectReader } from "../../objects/reader.js";
import type { Link } from "../../objects/tree.js";

import type { Repository } from "../repository.js";

/** The member of a step's record that says whose step it is. */
const SUBJECTS_MEMBER = "subjects";

/** The longest tag of a subject, in UTF-16 units. */
const SUBJECT_MAX_UNITS = 500;

/** How a subject is named in a step's record: by a digest, keyed where the workflow has keys, so that the record does not say who it is. */
export function subjectTag({ workflow, keys }: Repository, subject: string): string {
  return keys.digest(`agstate subject\0${workflow}\0${subject}`);
}

/** @throws AgstateError `INVALID_ARGUMENT` */
export function checkSubject(subject: unknown): string {
  if (typeof subject === "string" && subject !== "" && subject.length <= SUBJECT_MAX_UNITS) {
    return subject;
  }
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `a subject is a text of 1 to ${SUBJECT_MAX_UNITS} characters, not ${typeof subject === "string" ? `of ${subject.length}` : `of type ${typeof subject}`}`,
    { limit: SUBJECT_MAX_UNITS },
  );
}

/**
 * A step's record that says whose step it is.
 *
 * @throws AgstateError `INVALID_ARGUMENT` when the record is no object
 */
export function withSubjects(
  record: JsonValue,
  repository: Repository,
  subjects: readonly string[] | undefined,
): JsonValue {
  if (subjects === undefined || subjects.length === 0) return record;
  if (!isJsonObject(record)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "a commit's subjects are kept in the record of its step, which must be an object",
      { field: "subjects" },
    );
  }
  const tags = new Set(subjects.map((subject) => subjectTag(repository, checkSubject(subject))));
  return { ...record, [SUBJECTS_MEMBER]: [...tags].sort() };
}

/** Whether the record of a step bears a subject's tag. */
export async function stepBelongsTo(
  reader: ObjectReader,
  link: Link,
  tag: string,
): Promise<boolean> {
  try {
    const tags = await decodeAt(reader, link, [SUBJECTS_MEMBER]);
    return Array.isArray(tags) && tags.includes(tag);
  } catch (error) {
    if (isAgstateError(error, "ERASED", "WITHHELD")) return false;
    throw error;
  }
}
