import { AgstateError } from "../../core/errors.js";
import { checkIdentity, checkReason } from "../../core/names.js";
import { SUBJECT_TOKEN } from "../../objects/isolation.js";
import type { Repository } from "../repository.js";
import { COPY_MIN_UNITS, Needles } from "./needles.js";
import { compilePaths, erasurePath } from "./paths.js";
import { checkSubject, subjectTag } from "./subjects.js";
import type { Sought } from "./survey.js";
import type { EraseRequest, ErasureTarget } from "./types.js";

const REASON_MAX_BYTES = 500;
const KEPT = "something is erased for a reason that its tombstones tell";

/** A request that is checked. */
export interface CheckedRequest {
  readonly target: ErasureTarget;
  readonly by: string;
  readonly reason: string;
  readonly keepKeys: boolean;
}

/**
 * Checks who erases what, and why.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_NAME`, `INVALID_PATH`, `INVALID_VALUE` without a reason
 */
export function checkRequest(request: EraseRequest): CheckedRequest {
  const by = checkIdentity("by", request.by);
  const reason = checkReason(request.reason, KEPT, REASON_MAX_BYTES);
  return { target: targetOf(request), by, reason, keepKeys: request.keepKeys ?? false };
}

function targetOf(request: EraseRequest): ErasureTarget {
  const given = ["workflow", "paths", "subject"].filter(
    (name) => (request as unknown as Record<string, unknown>)[name] !== undefined,
  );
  if (given.length === 1) {
    if ("subject" in request) return { subject: checkSubject(request.subject) };
    if ("paths" in request && request.paths.length > 0) {
      for (const path of request.paths) erasurePath(path);
      return { paths: [...request.paths] };
    }
    if ("workflow" in request && request.workflow === true) return { workflow: true };
  }
  throw new AgstateError(
    "INVALID_ARGUMENT",
    'erase one of these: the whole workflow ({ workflow: true }), paths ({ paths: ["/state/user/email"] }) or a subject ({ subject: "..." })',
    { given },
  );
}

/**
 * What a target leads to in a workflow that declares where subjects' values stand.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a subject that could not be found anywhere
 */
export function soughtOf(
  repository: Repository,
  target: ErasureTarget,
  subjects: readonly string[],
  objects: ReadonlySet<string>,
): Sought {
  if ("subject" in target) {
    const { subject } = target;
    const paths = subjects.map((path) =>
      erasurePath(path).map((token) => (token === SUBJECT_TOKEN ? subject : token)),
    );
    return {
      paths: compilePaths(paths),
      stepTag: subjectTag(repository, subject),
      texts: [subject],
      objects,
    };
  }
  const paths = "paths" in target ? target.paths : [];
  return { paths: compilePaths(paths.map(erasurePath)), stepTag: null, texts: [], objects };
}

/**
 * Refuses who and why that would tell what is erased: both stay for good.
 *
 * @throws AgstateError `INVALID_VALUE`
 */
export function refuseTelling({ target, by, reason }: CheckedRequest, needles: Needles): void {
  const told = new Needles();
  if ("subject" in target) told.add(target.subject);
  for (const [field, text] of Object.entries({ by, reason })) {
    if (!told.within(text) && !needles.within(text)) continue;
    throw new AgstateError(
      "INVALID_VALUE",
      `${field} holds something of what is to be erased (a text of ${COPY_MIN_UNITS} characters or more), and stays in the audit and in tombstones; say it otherwise`,
      { field },
    );
  }
}
