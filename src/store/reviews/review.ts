import { AgstateError } from "../../core/errors.js";
import { checkIdentity, checkOneLine } from "../../core/names.js";
import { normalize } from "../../objects/normalize.js";
import { branchRef } from "../../refs/names.js";
import { changedPaths } from "../../reviews/binding.js";
import {
  type FoundOut,
  type ReviewRecord,
  type ReviewStatus,
  type ReviewSubject,
  statusAt,
} from "../../reviews/record.js";
import type { Repository } from "../repository.js";
import { recordRefusal } from "./refusals.js";
import { boundPaths } from "./state-at.js";
import { listReviews, readReview, type StoredReview, writeChange } from "./stored.js";

/** Who decides, and why. */
export interface DecideOptions {
  readonly actor: string;
  /** One line. */
  readonly reason?: string;
}

export interface ApproveOptions extends DecideOptions {
  /** Of a step in doubt, which needs it: whether its effect happened, and then what came out. */
  readonly found?:
    | { readonly happened: true; readonly output?: unknown }
    | { readonly happened: false };
}

/** A review as the API tells of it. */
export interface ReviewInfo {
  readonly id: string;
  readonly kind: string;
  /** As it is now: one that has waited too long is `expired`. */
  readonly status: ReviewStatus;
  readonly subject: ReviewSubject;
  readonly askedBy: string;
  readonly askedAt: Date;
  readonly expiresAt: Date | null;
  /** Why it was asked; may be empty. */
  readonly reason: string;
  readonly decision: {
    readonly by: string;
    readonly reason: string;
    readonly at: Date;
    readonly found?: FoundOut;
  } | null;
  /** Of an approval that was used: the step's number, null where it had none before it ended. */
  readonly use: { readonly number: number | null; readonly at: Date } | null;
  /** The commit that says so. */
  readonly commit: string;
}

export interface ReviewFilter {
  /** Those that wait for a decision, or those that do not. */
  readonly open?: boolean;
  readonly kind?: string;
  /** By the branch that they are about, such as `booker/try-1`. */
  readonly branch?: string;
}

const ATTEMPTS = 20;

/** A request for a decision by a person. */
export class Review {
  /** @internal Use `workflow.review` or `workflow.reviews`. */
  constructor(
    private readonly repository: Repository,
    private stored: StoredReview,
  ) {}

  get id(): string {
    return this.stored.id;
  }

  get info(): ReviewInfo {
    const { id, record, commit } = this.stored;
    const { kind, subject, askedBy, reason, decision, use } = record;
    const { askedAt, expiresAt } = record;
    return {
      id,
      kind,
      status: statusAt(record, this.repository.context.now()),
      subject,
      askedBy,
      askedAt: new Date(askedAt),
      expiresAt: expiresAt === null ? null : new Date(expiresAt),
      reason,
      decision: decision === null ? null : { ...decision, at: new Date(decision.at) },
      use: use === null ? null : { ...use, at: new Date(use.at) },
      commit: commit.id,
    };
  }

  /**
   * Lets what is asked for happen, once, as it was asked for.
   *
   * @throws AgstateError `REVIEW_DECIDED` when somebody has decided before, `REVIEW_EXPIRED`, `REVIEW_LAPSED`
   *   when a path of the state that it is bound to has changed, `INVALID_ARGUMENT`, `INVALID_NAME`
   */
  async approve(options: ApproveOptions): Promise<ReviewInfo> {
    const { found } = options;
    if ((this.stored.record.kind === "in-doubt") !== (found !== undefined)) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        found === undefined
          ? `review ${this.id} asks what became of a step: say whether its effect happened (--happened OUTPUT or --not-happened)`
          : `review ${this.id} asks for an approval, and not whether something happened`,
        { review: this.id, kind: this.stored.record.kind },
      );
    }
    return this.decide("approved", options, found && this.foundOut(found));
  }

  /**
   * Refuses what is asked for.
   *
   * @throws AgstateError `REVIEW_DECIDED`, `REVIEW_EXPIRED`, `INVALID_NAME`
   */
  async discard(options: DecideOptions): Promise<ReviewInfo> {
    return this.decide("discarded", options, undefined);
  }

  private foundOut(found: NonNullable<ApproveOptions["found"]>): FoundOut {
    if (!found.happened || found.output === undefined) return { happened: found.happened };
    const { stateMaxBytes } = this.repository.context.limits;
    const output = normalize(found.output, { maxBytes: stateMaxBytes, what: "step output" });
    return { happened: true, output };
  }

  private async decide(
    status: "approved" | "discarded",
    { actor, reason = "" }: DecideOptions,
    found: FoundOut | undefined,
  ): Promise<ReviewInfo> {
    checkIdentity("actor", actor);
    checkOneLine("reason", reason);
    const { repository } = this;
    await repository.mustBePrimary("decide a review");
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { record } = this.stored;
      const at = repository.context.now();
      const stands = statusAt(record, at);
      if (stands !== "open") {
        await recordRefusal(repository, this.stored, actor, `${status} too late: was ${stands}`);
        throw this.notOpen(stands);
      }
      const changed = status === "approved" ? await this.changed() : [];
      if (changed.length > 0) {
        const says = `Lapse: what differs is ${changed.length} of the paths`;
        const lapsed = { ...record, status: "lapsed" } as const;
        const written = await writeChange(repository, this.stored, lapsed, { actor, says });
        if (written !== null) this.stored = written;
        throw new AgstateError(
          "REVIEW_LAPSED",
          `review ${this.id} asks for what is not so any more: ${changed.join(", ")} changed; whoever asked must ask again`,
          { review: this.id, differ: changed },
        );
      }
      const decision = { by: actor, reason, at, ...(found === undefined ? {} : { found }) };
      const verb = status === "approved" ? "Approve" : "Discard";
      const says = reason === "" ? `${verb} ${this.id}` : `${verb}: ${reason}`.slice(0, 1000);
      const next: ReviewRecord = { ...record, status, decision };
      const written = await writeChange(repository, this.stored, next, { actor, says });
      if (written !== null) {
        this.stored = written;
        return this.info;
      }
      // Somebody else decided, or it lapsed.
      this.stored = await readReview(repository, this.id);
    }
    throw new AgstateError("REF_CONFLICT", `review ${this.id} is changed all the time; try again`, {
      review: this.id,
    });
  }

  private notOpen(status: ReviewStatus): AgstateError {
    const { id } = this;
    const { decision } = this.stored.record;
    if (status === "expired" || status === "lapsed") {
      return new AgstateError(
        status === "expired" ? "REVIEW_EXPIRED" : "REVIEW_LAPSED",
        `review ${id} has ${status}; whoever asked must ask again`,
        { review: id, status },
      );
    }
    const by = decision === null ? "by a rule" : `by ${decision.by}`;
    return new AgstateError(
      "REVIEW_DECIDED",
      `review ${id} was decided before: ${status} ${by}; a decision is made once`,
      { review: id, status, by: decision?.by ?? null },
    );
  }

  /**
   * What is not as it was when the review was opened: the bound paths of the state at which something
   * else stands now, or `branch` when the branch was deleted or made anew.
   */
  async changed(): Promise<string[]> {
    const { repository } = this;
    const { subject } = this.stored.record;
    const row = await repository.refs.row(branchRef(subject.branch));
    if (row === undefined || row.id === null || row.incarnation !== subject.incarnation) {
      return ["branch"];
    }
    const paths = subject.paths.map(({ path }) => path);
    if (paths.length === 0) return [];
    const head = await repository.commits.read(row.id);
    return changedPaths(subject, { paths: await boundPaths(repository, head, paths) });
  }
}

/** Reviews of a workflow, those asked for last first. */
export async function reviewsOf(repository: Repository, filter: ReviewFilter): Promise<Review[]> {
  const now = repository.context.now();
  const ref = filter.branch === undefined ? undefined : branchRef(filter.branch);
  const found = (await listReviews(repository)).filter(({ record }) => {
    if (filter.kind !== undefined && record.kind !== filter.kind) return false;
    if (ref !== undefined && branchRef(record.subject.branch) !== ref) return false;
    const open = statusAt(record, now) === "open";
    return filter.open === undefined || filter.open === open;
  });
  found.sort((a, b) => b.record.askedAt - a.record.askedAt || (a.id < b.id ? -1 : 1));
  return found.map((stored) => new Review(repository, stored));
}

export async function reviewOf(repository: Repository, id: string): Promise<Review> {
  return new Review(repository, await readReview(repository, id));
}
