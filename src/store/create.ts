import type { JsonValue } from "../core/json.js";
import { checkIdentity } from "../core/names.js";
import { checkPolicies } from "../merge/policy.js";
import { formatDataPolicy } from "../objects/data-policy.js";
import { encodeValue, type Link, toLink } from "../objects/encode.js";
import { compileIsolation, type Isolation } from "../objects/isolation.js";
import { normalize } from "../objects/normalize.js";
import { ObjectSink } from "../objects/sink.js";
import { CANONICAL_REF, GENESIS_REF } from "../refs/names.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { PendingRow, WorkflowRecord } from "../storage/port.js";
import { checkDeclaration } from "./declaration.js";
import { encodePolicies } from "./merge/policies.js";
import { placedParts } from "./placed.js";
import { Repository, type StoreContext } from "./repository.js";
import type { CreateWorkflowOptions } from "./types.js";
import { type PreparedCommit, prepareCommit } from "./write-commit.js";

/** A workflow that is checked and encoded, and not written. */
export interface PreparedWorkflow {
  readonly record: WorkflowRecord;
  readonly repository: Repository;
  readonly genesis: PreparedCommit;
  readonly canonical: PreparedCommit;
  /** Its keys. */
  readonly rows: readonly PendingRow[];
}

/** What stands around a workflow's declaration. */
export interface Declaring {
  /** The region of the store. */
  readonly region: string | null;
  /** Which declarations a file of defaults made; the genesis commit tells of them. */
  readonly defaulted: readonly string[];
}

/**
 * Makes a workflow's first commits: the genesis commit, whose state is what the workflow declares, and canonical's.
 * Writes nothing.
 *
 * @throws AgstateError `INVALID_NAME`, `INVALID_VALUE`, `INVALID_ARGUMENT`, `INVALID_PATH`, `STORE_MISMATCH`
 */
export async function prepareWorkflow(
  context: StoreContext,
  id: string,
  options: CreateWorkflowOptions,
  { region, defaulted }: Declaring,
): Promise<PreparedWorkflow> {
  checkIdentity("workflow id", id);
  const author = checkIdentity("author", options.author ?? "agstate");
  const declared = checkDeclaration(options, region);
  const isolation = compileIsolation(declared.isolation, declared.subjects, declared.placement);
  const policies = checkPolicies(options.policies ?? {});
  const { stateMaxBytes } = context.limits;
  const given = Object.hasOwn(options, "state") ? options.state : {};
  const state = normalize(given, { maxBytes: stateMaxBytes });
  const { keys, rows, encryption, encode } = await context.keys.first(
    id,
    declared.classification,
    declared.placement.length > 0,
  );
  const placed = placedParts(keys, declared.placement, context.foreign);
  placed?.refuseUnlessWritable();
  const record: WorkflowRecord = {
    id,
    classification: declared.classification,
    storageRegion: declared.storageRegion,
    retentionPolicy: declared.retentionPolicy,
    isolation: formatDataPolicy({ ...declared, keyed: keys.keyed }),
    createdAt: context.now(),
    completedAt: null,
  };
  const repository = new Repository(context, id, isolation, keys, placed);
  const first = (
    sink: ObjectSink,
    value: JsonValue,
    policy: Isolation | null,
    of: { readonly policy?: Link | undefined; readonly stateVersion?: number | undefined },
  ) =>
    prepareCommit(repository, {
      sink,
      parents: [],
      root: { policy: of.policy, state: toLink(sink, encodeValue(sink, value, policy)) },
      stateVersion: of.stateVersion,
      author,
      minStep: 1,
      options: { message: `Create workflow ${id}` },
    });
  const { placement, ...rest } = declared;
  const declaration = {
    workflow: id,
    ...rest,
    ...(placement.length > 0 && { placement: placement as unknown as JsonValue }),
    ...(encryption !== null && { encryption }),
    createdAt: record.createdAt,
    ...(defaulted.length > 0 && { defaulted }),
  };
  // Whoever has no key must know what the workflow is.
  const genesis = first(new ObjectSink(), declaration, null, {});
  const canonical = encode(() => {
    const sink = repository.newSink();
    const policy = encodePolicies(sink, policies);
    const stateVersion = repository.schema?.version;
    return first(sink, state, repository.statePolicy, { policy, stateVersion });
  });
  return { record, repository, genesis, canonical, rows };
}

/**
 * Writes a workflow: its catalogue row and both commits, in one write.
 *
 * @throws AgstateError `WORKFLOW_EXISTS`, and what the storage raises
 */
export async function landWorkflow(prepared: PreparedWorkflow): Promise<void> {
  const { record, repository, genesis, canonical, rows } = prepared;
  const update = (ref: string, commit: PreparedCommit): RefUpdate => ({
    ref,
    expect: { kind: "absent" },
    target: commit.record.id,
    commits: [commit.record],
    note: { actor: commit.loaded.author, reason: "workflow: created" },
  });
  const updates = [update(GENESIS_REF, genesis), update(CANONICAL_REF, canonical)];
  const answers = await repository.refs.apply({
    create: record,
    updates,
    pending: rows,
    objects: [...genesis.objects, ...canonical.objects].map((object) => object.record),
  });
  for (let i = 0; i < updates.length; i++) movedRow(updates[i] as RefUpdate, answers[i]);
  repository.context.keys.share(repository.keys);
  // Branches are mostly made from it at once.
  repository.commits.keep(canonical.loaded);
}
