import { checkIdentity } from "../core/names.js";
import { checkPolicies, type Policies } from "../merge/policy.js";
import { formatDataPolicy } from "../objects/data-policy.js";
import { encodeValue, toLink } from "../objects/encode.js";
import { compileIsolation, type Isolation, isolationOfKey } from "../objects/isolation.js";
import { normalize } from "../objects/normalize.js";
import { ObjectSink } from "../objects/sink.js";
import { CANONICAL_REF, GENESIS_REF } from "../refs/names.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { WorkflowRecord } from "../storage/port.js";
import { checkDeclaration } from "./declaration.js";
import { encodePolicies } from "./merge/policies.js";
import { Repository, type StoreContext } from "./repository.js";
import type { CreateWorkflowOptions } from "./types.js";
import { type PreparedCommit, prepareCommit } from "./write-commit.js";

/** A workflow that is checked and encoded, and not written. */
export interface PreparedWorkflow {
  readonly record: WorkflowRecord;
  readonly repository: Repository;
  readonly genesis: PreparedCommit;
  readonly canonical: PreparedCommit;
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
export function prepareWorkflow(
  context: StoreContext,
  id: string,
  options: CreateWorkflowOptions,
  { region, defaulted }: Declaring,
): PreparedWorkflow {
  checkIdentity("workflow id", id);
  const author = checkIdentity("author", options.author ?? "agstate");
  const declared = checkDeclaration(options, region);
  const isolation = compileIsolation(declared.isolation, declared.subjects);
  const record: WorkflowRecord = {
    id,
    classification: declared.classification,
    storageRegion: declared.storageRegion,
    retentionPolicy: declared.retentionPolicy,
    isolation: formatDataPolicy({ ...declared, keyed: "nothing" }),
    createdAt: context.now(),
    completedAt: null,
  };
  const repository = new Repository(context, id, isolation);
  const message = `Create workflow ${id}`;
  const first = (value: unknown, policy: Isolation | null, merging: Policies = {}) => {
    const sink = new ObjectSink();
    const state = normalize(value, { maxBytes: context.limits.stateMaxBytes });
    return prepareCommit(repository, {
      sink,
      parents: [],
      root: {
        state: toLink(sink, encodeValue(sink, state, policy)),
        policy: encodePolicies(sink, merging),
      },
      author,
      minStep: 1,
      options: { message },
    });
  };
  const declaration = { workflow: id, ...declared, createdAt: record.createdAt };
  return {
    record,
    repository,
    genesis: first(defaulted.length === 0 ? declaration : { ...declaration, defaulted }, null),
    canonical: first(
      Object.hasOwn(options, "state") ? options.state : {},
      isolationOfKey(isolation, "state"),
      checkPolicies(options.policies ?? {}),
    ),
  };
}

/**
 * Writes a workflow: its catalogue row and both commits, in one write.
 *
 * @throws AgstateError `WORKFLOW_EXISTS`, and what the storage raises
 */
export async function landWorkflow(prepared: PreparedWorkflow): Promise<void> {
  const { record, repository, genesis, canonical } = prepared;
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
    objects: [...genesis.objects, ...canonical.objects].map((object) => object.record),
  });
  for (let i = 0; i < updates.length; i++) movedRow(updates[i] as RefUpdate, answers[i]);
  // Branches are mostly made from it at once.
  repository.commits.keep(canonical.loaded);
}
