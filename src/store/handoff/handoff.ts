import { AgstateError, isAgstateError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";
import { checkIdentity, checkText, quoteForMessage } from "../../core/names.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { parseAgentRef, shortRefName, tagRef } from "../../refs/names.js";
import { type Fingerprints, recordFingerprints } from "../../staleness/fingerprints.js";
import { parseTolerance } from "../../staleness/tolerance.js";
import type { Checkers, ResourceName, Tolerance } from "../../staleness/types.js";
import type { ReliedOn } from "../../steps/spec.js";
import type { Repository } from "../repository.js";
import { basisAt } from "./basis.js";
import { ENVELOPE_VERSION, type FingerprintTolerance, type HandoffEnvelope } from "./envelope.js";
import { sessionFacts } from "./facts.js";
import { type Handoff, toHandoff } from "./info.js";
import { listOf, namesOf, observed } from "./resources.js";
import { checkSummary, type GivenSummary, SUMMARY_TEXT_MAX_BYTES } from "./summary.js";
import type { SessionBranch } from "./write.js";

export interface HandoffOptions {
  /** What people are told. */
  readonly summary: GivenSummary;
  /**
   * What the work relies on besides what its steps have put on record, or in another version or with another tolerance than
   * these. Of one without a version its checker is asked.
   */
  readonly resources?: readonly ReliedOn[];
  /** What the work was done with; left out, what the session before was done with. */
  readonly fingerprints?: Fingerprints;
  /** For resources of which nobody has said it (default `exact`), and for changed fingerprints (default `report`). */
  readonly tolerance?: Tolerance | GivenTolerance;
  /** Further words; may have several lines. */
  readonly note?: string;
  /** The name of the tag; default `handoff-AGENT-BRANCH-N`. */
  readonly tag?: string;
  /** Who hands off; default the handle's author. */
  readonly author?: string;
  /** Resources that nobody relies on any more. */
  readonly forget?: readonly ResourceName[];
  /** Default those that the store was opened with. */
  readonly checkers?: Checkers;
  /** Ends the asking of checkers. */
  readonly signal?: AbortSignal;
  /** W3C traceparent. */
  readonly trace?: string;
}

/** Tolerances for what a resource or fingerprint itself says nothing of. */
export interface GivenTolerance {
  readonly resources?: Tolerance;
  readonly fingerprints?: FingerprintTolerance;
}

const ATTEMPTS = 20;

/**
 * Ends a session: a commit with an envelope, and a tag on it, in one write.
 *
 * @throws AgstateError `INVALID_VALUE`, `INVALID_NAME`, `LIMIT_EXCEEDED`, `REF_EXISTS` when the tag is taken, `REF_CONFLICT`
 */
export async function handOff(
  repository: Repository,
  branch: SessionBranch,
  options: HandoffOptions,
): Promise<Handoff> {
  const { context } = repository;
  const summary = checkSummary(options.summary);
  const note = checkText("the note", options.note ?? "", SUMMARY_TEXT_MAX_BYTES);
  const author = checkIdentity("author", options.author ?? branch.author);
  const tolerance = toleranceOf(options.tolerance);
  const fingerprints = options.fingerprints && recordFingerprints(options.fingerprints);
  const forget = namesOf(options.forget ?? []);
  if (options.tag !== undefined) tagRef(options.tag);
  const journal = branch.stepJournal();
  const { carried } = journal;
  const looking = {
    checkers: options.checkers ?? context.checkers,
    now: context.now,
    signal: options.signal,
  };
  const given = await observed([...(carried as ReliedOn[]), ...listOf(options.resources)], looking);
  const envelopeAt = async (head: LoadedCommit, tag: string): Promise<HandoffEnvelope> => {
    const basis = await basisAt(repository, head, {
      given,
      forget,
      tolerance: tolerance.resources,
    });
    return {
      v: ENVELOPE_VERSION,
      kind: "handoff",
      branch: branch.name,
      incarnation: branch.incarnation,
      tag,
      by: author,
      at: context.now(),
      summary,
      note,
      facts: await sessionFacts(repository, head, basis.session, branch),
      untold: basis.untold,
      resources: basis.resources,
      fingerprints: fingerprints ?? basis.fingerprints,
      fingerprintTolerance: tolerance.fingerprints,
    };
  };
  for (let attempt = 1; ; attempt++) {
    const tag = options.tag ?? (await nextTag(repository, branch.ref));
    let envelope: HandoffEnvelope | undefined;
    try {
      const commit = await branch.putEnvelope(async (head) => {
        envelope = await envelopeAt(head, tag);
        return {
          envelope,
          message: messageOf(envelope),
          author,
          trace: options.trace,
          beside: ({ id }) => [tagged(tag, id, author, branch.name)],
        };
      });
      journal.carried = journal.carried.slice(carried.length);
      return toHandoff(commit, envelope as HandoffEnvelope);
    } catch (error) {
      const isTaken = isAgstateError(error, "REF_EXISTS") && options.tag === undefined;
      if (!isTaken || attempt >= ATTEMPTS) throw error;
    }
  }
}

function tagged(tag: string, target: LoadedCommit["id"], actor: string, branch: string) {
  const ref = tagRef(tag);
  return {
    update: {
      ref,
      expect: { kind: "absent" },
      target,
      note: { actor, reason: `handoff: ${branch}` },
    },
    objects: [],
    lost: () =>
      new AgstateError("REF_EXISTS", `${shortRefName(ref)} exists already; choose another tag`, {
        ref,
      }),
  } as const;
}

/** The first free name of a branch's hand-offs, by those that there are. */
async function nextTag(repository: Repository, ref: string): Promise<string> {
  const of = parseAgentRef(ref);
  const slug = of === null ? shortRefName(ref) : `${of.agent}-${of.branch}`;
  // Names are single components of a bounded length.
  const prefix = `handoff-${slug.slice(0, TAG_SLUG_MAX_LENGTH).toWellFormed()}-`;
  const rows = await repository.storage.readRefs(repository.workflow, { prefix: tagRef(prefix) });
  const numbers = rows.map(({ name }) => Number(name.slice(tagRef(prefix).length)));
  return `${prefix}${Math.max(0, ...numbers.filter(Number.isSafeInteger)) + 1}`;
}

const TAG_SLUG_MAX_LENGTH = 40;

function toleranceOf(given: HandoffOptions["tolerance"]): {
  readonly resources: Tolerance;
  readonly fingerprints: FingerprintTolerance;
} {
  const isBoth = isJsonObject(given) && !Object.hasOwn(given, "maxAgeMs");
  const { resources = "exact", fingerprints = "report" } = (
    isBoth ? given : given === undefined ? {} : { resources: given }
  ) as GivenTolerance;
  if (fingerprints !== "report" && fingerprints !== "exact") {
    throw new AgstateError(
      "INVALID_VALUE",
      `the tolerance for fingerprints is ${quoteForMessage(String(fingerprints))}; it must be report or exact`,
      { field: "tolerance" },
    );
  }
  return { resources: parseTolerance(resources), fingerprints };
}

/** What the commit says: counts alone, as a message is in clear and stays, whatever of the envelope is encrypted or erased. */
function messageOf({ branch, tag, facts, resources }: HandoffEnvelope): string {
  const { steps, sideEffects, inDoubt, conflicts, reviews } = facts;
  const counts = [
    count(steps?.count ?? 0, "step"),
    count(sideEffects.count, "side effect"),
    count(resources.length, "resource"),
    ...(inDoubt.count > 0 ? [`${inDoubt.count} in doubt`] : []),
    ...(conflicts.count > 0 ? [count(conflicts.count, "open conflict")] : []),
    ...(reviews.count > 0 ? [count(reviews.count, "open review")] : []),
  ];
  return `Hand off ${branch}\n\n${counts.join(", ")}\nagstate show ${tag} tells more`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
