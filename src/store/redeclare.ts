import { CLASSIFICATIONS, type Classification } from "../core/classification.js";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { isJsonObject, type JsonObject } from "../core/json.js";
import { checkIdentity, checkReason } from "../core/names.js";
import { decodeValue } from "../objects/decode.js";
import { encodeValue, toLink } from "../objects/encode.js";
import { ObjectSink } from "../objects/sink.js";
import { GENESIS_REF } from "../refs/names.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { Head, Redeclared, WorkflowRecord } from "../storage/port.js";
import { checkDeclaration } from "./declaration.js";
import type { Repository } from "./repository.js";
import type { WorkflowDeclaration } from "./types.js";
import { toWorkflowInfo } from "./views.js";
import { prepareCommit } from "./write-commit.js";

/** What of a declaration may change; what is left out stays. */
export interface DeclarationChange {
  readonly classification?: Classification;
  /** Null for none. */
  readonly retentionPolicy?: WorkflowDeclaration["retentionPolicy"] | null;
}

export interface RedeclareOptions {
  /** Who changes it; default `agstate`. */
  readonly by?: string;
  /** Why, in one line. */
  readonly reason: string;
  /** Lets the classification become less strict. */
  readonly lower?: boolean;
}

/** What a log says where a declaration was changed. */
export const REDECLARED = "workflow: redeclared";

const REASON_MAX_BYTES = 500;
const KEPT = "a declaration is changed for a reason that its log keeps";

/**
 * Changes what a workflow declares: a commit on its audit ref keeps who, when, why and what it was, and then its row says so.
 * Cut off between the two, the call made again ends it.
 *
 * @returns the row as it is then
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_VALUE` without a reason, `REF_CONFLICT` when somebody else changed it meanwhile,
 *   `STORE_READONLY` for who may not
 */
export async function redeclare(
  repository: Repository,
  change: DeclarationChange,
  options: RedeclareOptions,
): Promise<WorkflowRecord> {
  const { storage, workflow, context, refs, commits } = repository;
  const author = checkIdentity("author", options.by ?? "agstate");
  const reason = checkReason(options.reason, KEPT, REASON_MAX_BYTES);
  const record = (await storage.readWorkflow(workflow)) as WorkflowRecord;
  const before: Redeclared = record;
  const after = await checkChange(repository, record, change, options.lower === true);
  // Who may not do it is told before anything is written.
  await storage.redeclare(workflow, declaredBy(before));
  const genesis = (await refs.head(GENESIS_REF)) as Head;
  const commit = await commits.read(genesis.row.id as ObjectId);
  const link = commit.root.state;
  const declared = link && (await decodeValue(repository.objectsOf(commit), link));
  const said = isJsonObject(declared) ? declared : {};
  if (!isSaid(said, after)) {
    const changed = { at: context.now(), by: author, reason, from: { ...declaredBy(before) } };
    const state: JsonObject = { ...said, ...after, changed };
    const sink = new ObjectSink();
    const prepared = prepareCommit(repository, {
      sink,
      parents: [commit],
      root: { state: toLink(sink, encodeValue(sink, state, null)) },
      author,
      minStep: 1,
      options: { message: `Redeclare workflow ${workflow}\n\n${reason}` },
    });
    const update: RefUpdate = {
      ref: GENESIS_REF,
      expect: { kind: "id", id: commit.id, seq: genesis.row.seq },
      target: prepared.record.id,
      commits: [prepared.record],
      note: { actor: author, reason: `${REDECLARED}: ${reason}` },
    };
    const objects = prepared.objects.map((object) => object.record);
    const [answer] = await refs.apply({ updates: [update], objects });
    movedRow(update, answer);
  }
  await storage.redeclare(workflow, after);
  return { ...record, ...after };
}

function declaredBy({ classification, retentionPolicy }: Redeclared): Redeclared {
  return { classification, retentionPolicy };
}

/** Whether a declaration says so already. */
export function isSaid(said: JsonObject, { classification, retentionPolicy }: Redeclared): boolean {
  return (
    said.classification === classification && (said.retentionPolicy ?? null) === retentionPolicy
  );
}

/** Holds a change against what is declared, and against what is stored by that declaration. */
async function checkChange(
  repository: Repository,
  record: WorkflowRecord,
  change: DeclarationChange,
  lower: boolean,
): Promise<Redeclared> {
  const { region } = await repository.storage.describe();
  const info = toWorkflowInfo(record);
  const { classification = info.classification, retentionPolicy = record.retentionPolicy } = change;
  const checked = checkDeclaration(
    {
      classification,
      isolation: info.isolation,
      subjects: info.subjects,
      ...(info.storageRegion !== null && { storageRegion: info.storageRegion }),
      ...(retentionPolicy !== null && { retentionPolicy }),
    },
    region,
  );
  const rank = (one: Classification) => CLASSIFICATIONS.indexOf(one);
  if (rank(classification) < rank(info.classification) && !lower) {
    throw refused(
      info.classification,
      classification,
      "would be less strict; if that is meant, say so (lower: true, --lower)",
    );
  }
  if (isKept(classification) && !isKept(info.classification)) {
    throw refused(
      info.classification,
      classification,
      "has keys from the first step on, and what is stored here was written without; create another workflow for it, and bring over what may be brought",
    );
  }
  return declaredBy(checked);
}

/** Whether data of a classification is under keys, if only its hashes. */
function isKept(classification: Classification): boolean {
  return classification === "sensitive" || classification === "regulated";
}

function refused(from: Classification, to: Classification, why: string): AgstateError {
  return new AgstateError("INVALID_ARGUMENT", `the classification is ${from}, and ${to} ${why}`, {
    from,
    to,
  });
}
